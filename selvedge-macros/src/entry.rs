//! The attributes `main` and `test`: an async function becomes a plain function, which runs its
//! former body in a runtime.
//!
//! The function keeps its name, its visibility and its attributes. The body moves into an async
//! block and keeps its spans, so that the compiler's errors point at the user's lines. An error in
//! an argument of the attribute points at that argument.
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Error, Expr, ExprLit, Ident, ItemFn, Lit, LitStr, Meta, MetaNameValue, Path, Result,
    ReturnType, Token, Type, parse::Parser, parse_quote, punctuated::Punctuated, spanned::Spanned,
};

/// The attribute that is expanded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Main,
    Test,
}

/// The kind of runtime that runs the function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavor {
    CurrentThread,
    Local,
    MultiThread,
}

/// The effect of a panic of a task on the runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnhandledPanic {
    Ignore,
    ShutdownRuntime,
}

/// The arguments of the attribute.
struct Settings {
    flavor: Flavor,
    workers: Option<(usize, Span)>,
    start_paused: Option<(bool, Span)>,
    unhandled_panic: Option<UnhandledPanic>,
    name: Option<LitStr>,
    observe: Option<LitStr>,
    path: Path,
}

/// The names of the arguments, for the messages of errors.
const ARGUMENTS: &str = "flavor, worker_threads, start_paused, unhandled_panic, name, observe \
     and crate";

/// Expands the attribute. `path` is that of the crate with the runtime, unless an argument names
/// another one.
pub(crate) fn expand(
    arguments: TokenStream,
    item: TokenStream,
    kind: Kind,
    path: &str,
) -> TokenStream {
    let expanded = syn::parse2::<ItemFn>(item.clone())
        .and_then(|function| in_a_runtime(arguments, function, kind, path));
    // Beside the error, the expansion keeps the item. So the compiler also reports the item's own
    // errors, and the errors of the code that uses the item.
    expanded.unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote! { #error #item }
    })
}

fn in_a_runtime(
    arguments: TokenStream,
    mut function: ItemFn,
    kind: Kind,
    path: &str,
) -> Result<TokenStream> {
    if function.sig.asyncness.take().is_none() {
        let what = "the function is not async: write `async fn`";
        return Err(Error::new(function.sig.fn_token.span(), what));
    }
    if kind == Kind::Test || function.sig.ident == "main" {
        if let Some(input) = function.sig.inputs.first() {
            return Err(Error::new(input.span(), "the function takes no arguments"));
        }
    }
    let settings = Settings::parse(arguments, kind, path)?;
    let path = &settings.path;
    let mut builder = match settings.flavor {
        Flavor::MultiThread => quote! { #path::runtime::Builder::new_multi_thread() },
        Flavor::CurrentThread | Flavor::Local => {
            quote! { #path::runtime::Builder::new_current_thread() }
        }
    };
    let build = match settings.flavor {
        Flavor::Local => quote! { build_local(::core::default::Default::default()) },
        Flavor::CurrentThread | Flavor::MultiThread => quote! { build() },
    };
    if let Some((workers, _)) = settings.workers {
        builder = quote! { #builder.worker_threads(#workers) };
    }
    if let Some((paused, span)) = settings.start_paused {
        builder = quote_spanned! { span => #builder.start_paused(#paused) };
    }
    if let Some(policy) = settings.unhandled_panic {
        let policy = match policy {
            UnhandledPanic::Ignore => quote! { Ignore },
            UnhandledPanic::ShutdownRuntime => quote! { ShutdownRuntime },
        };
        builder = quote! {
            #builder.unhandled_panic(#path::runtime::UnhandledPanic::#policy)
        };
    }
    if let Some(words) = &settings.observe {
        builder = quote_spanned! { words.span() => #builder.observe(#words) };
    }
    if let Some(name) = &settings.name {
        builder = quote! { #builder.name(#name) };
    }
    let body = &function.block;
    let made = quote! { async #body };
    let [runtime, future] = ["runtime", "future"].map(hidden);
    let future_is_made = match &function.sig.output {
        ReturnType::Default => named(&quote! { () }, &future, &made),
        ReturnType::Type(_, output) if can_be_named(output) => named(output, &future, &made),
        ReturnType::Type(..) => quote! { let #future = #made; },
    };
    function.block = parse_quote! {{
        let #runtime = #builder
            .enable_all()
            .#build
            .expect("the runtime of this function cannot be started");
        #future_is_made
        #runtime.block_on(#future)
    }};
    if kind == Kind::Test {
        let is_test = |attribute: &syn::Attribute| attribute.path().is_ident("test");
        if let Some(other) = function.attrs.iter().find(|attribute| is_test(attribute)) {
            let what = "this attribute makes it a test already: leave out the other";
            return Err(Error::new(other.span(), what));
        }
        function
            .attrs
            .insert(0, parse_quote! { #[::core::prelude::v1::test] });
    }
    Ok(quote! { #function })
}

/// Makes the name of a variable that the body cannot use. If the body uses this name, it finds an
/// item or argument of the user.
fn hidden(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Names the type of the output of the body's future, so that an error in the body names that type.
fn named(output: &impl ToTokens, future: &Ident, made: &TokenStream) -> TokenStream {
    quote! {
        let #future: ::core::pin::Pin<&mut dyn ::core::future::Future<Output = #output>> =
            ::core::pin::pin!(#made);
    }
}

/// Returns whether a type may stand outside of a function's signature. `!` and `impl Trait` may
/// not.
fn can_be_named(output: &Type) -> bool {
    let text = output.to_token_stream().to_string();
    !text
        .split(|c: char| !c.is_alphanumeric() && c != '!')
        .any(|word| ["impl", "!"].contains(&word))
}

impl Settings {
    fn parse(arguments: TokenStream, kind: Kind, path: &str) -> Result<Self> {
        let mut settings = Self {
            flavor: match kind {
                Kind::Main => Flavor::MultiThread,
                Kind::Test => Flavor::CurrentThread,
            },
            workers: None,
            start_paused: None,
            unhandled_panic: None,
            name: None,
            observe: None,
            path: syn::parse_str(path)?,
        };
        let arguments = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(arguments)?;
        let mut seen: Vec<String> = Vec::new();
        for argument in &arguments {
            let all = Expr::Lit(ExprLit {
                attrs: Vec::new(),
                lit: Lit::Str(LitStr::new("all", argument.span())),
            });
            let (path, value) = match argument {
                Meta::NameValue(MetaNameValue { path, value, .. }) => (path, value),
                Meta::Path(path) if path.is_ident("observe") => (path, &all),
                _ => return Err(Error::new(argument.span(), no_value(argument))),
            };
            let name = path.segments.last().map(|last| last.ident.to_string());
            let name = name
                .filter(|_| path.segments.len() == 1)
                .unwrap_or_default();
            if seen.contains(&name) {
                return Err(Error::new(path.span(), format!("`{name}` is set twice")));
            }
            match name.as_str() {
                "flavor" => settings.flavor = flavor(value)?,
                "worker_threads" => settings.workers = Some((workers(value)?, path.span())),
                "start_paused" => settings.start_paused = Some((flag(value)?, path.span())),
                "unhandled_panic" => settings.unhandled_panic = Some(unhandled_panic(value)?),
                "name" => settings.name = Some(runtime_name(value)?),
                "observe" => settings.observe = Some(views(value)?),
                "crate" => settings.path = text(value)?.parse()?,
                _ => {
                    let what = format!("unknown argument: there are {ARGUMENTS}");
                    return Err(Error::new(path.span(), what));
                }
            }
            seen.push(name);
        }
        if let Some((_, span)) = settings.workers {
            if settings.flavor != Flavor::MultiThread {
                let what = "worker_threads needs `flavor = \"multi_thread\"`";
                return Err(Error::new(span, what));
            }
        }
        Ok(settings)
    }
}

fn text(value: &Expr) -> Result<&LitStr> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Ok(text),
        _ => Err(Error::new(value.span(), "expected a string")),
    }
}

/// Returns the message for an argument that is not `name = value`.
fn no_value(argument: &Meta) -> String {
    match argument.path().get_ident() {
        Some(flavor) if Flavor::named(&flavor.to_string()).is_some() => {
            format!("write `flavor = \"{flavor}\"`")
        }
        _ => format!("an argument is `name = value`: there are {ARGUMENTS}"),
    }
}

impl Flavor {
    fn named(name: &str) -> Option<Self> {
        match name {
            "multi_thread" => Some(Self::MultiThread),
            "current_thread" => Some(Self::CurrentThread),
            "local" => Some(Self::Local),
            _ => None,
        }
    }
}

fn flavor(value: &Expr) -> Result<Flavor> {
    let name = text(value)?.value();
    Flavor::named(&name).ok_or_else(|| {
        let what = format!("no flavor `{name}`: there are multi_thread, current_thread and local");
        Error::new(value.span(), what)
    })
}

fn unhandled_panic(value: &Expr) -> Result<UnhandledPanic> {
    match text(value)?.value().as_str() {
        "ignore" => Ok(UnhandledPanic::Ignore),
        "shutdown_runtime" => Ok(UnhandledPanic::ShutdownRuntime),
        other => {
            let what = format!("no policy `{other}`: there are ignore and shutdown_runtime");
            Err(Error::new(value.span(), what))
        }
    }
}

/// Returns the name of the runtime. The builder would panic at a blank name.
fn runtime_name(value: &Expr) -> Result<LitStr> {
    let name = text(value)?;
    if name.value().trim().is_empty() {
        let what = "a runtime's name has a character that is not white space";
        return Err(Error::new(value.span(), what));
    }
    Ok(name.clone())
}

/// Returns the words of the views. The builder would panic at an unknown one.
fn views(value: &Expr) -> Result<LitStr> {
    let words = text(value)?;
    let given = words.value();
    for word in given.split(',').map(str::trim) {
        let is_known = match word.split_once('=') {
            None => ["list", "dump", "record", "all"].contains(&word),
            Some((name, folder)) => name == "record" && !folder.is_empty(),
        };
        if !is_known {
            let what = format!(
                "no view `{word}`: there are list, dump, record, record=FOLDER and all, with \
                 commas between them"
            );
            return Err(Error::new(value.span(), what));
        }
    }
    Ok(words.clone())
}

fn workers(value: &Expr) -> Result<usize> {
    let Expr::Lit(ExprLit {
        lit: Lit::Int(number),
        ..
    }) = value
    else {
        return Err(Error::new(value.span(), "expected a number of workers"));
    };
    match number.base10_parse::<usize>()? {
        number @ 1..=65_535 => Ok(number),
        _ => Err(Error::new(
            value.span(),
            "a runtime has 1 to 65,535 workers",
        )),
    }
}

fn flag(value: &Expr) -> Result<bool> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Bool(flag),
            ..
        }) => Ok(flag.value),
        _ => Err(Error::new(value.span(), "expected true or false")),
    }
}

#[cfg(test)]
mod tests;
