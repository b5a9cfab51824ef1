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

/// The arguments of the attribute.
struct Settings {
    multi_thread: bool,
    workers: Option<(usize, Span)>,
    start_paused: Option<(bool, Span)>,
    path: Path,
}

pub(crate) fn expand(arguments: TokenStream, item: TokenStream, kind: Kind) -> TokenStream {
    let expanded = syn::parse2::<ItemFn>(item.clone())
        .and_then(|function| in_a_runtime(arguments, function, kind));
    // Beside the error, the expansion keeps the item. So the compiler also reports the item's own
    // errors, and the errors of the code that uses the item.
    expanded.unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote! { #error #item }
    })
}

fn in_a_runtime(arguments: TokenStream, mut function: ItemFn, kind: Kind) -> Result<TokenStream> {
    if function.sig.asyncness.take().is_none() {
        let what = "the function is not async: write `async fn`";
        return Err(Error::new(function.sig.fn_token.span(), what));
    }
    if kind == Kind::Test || function.sig.ident == "main" {
        if let Some(input) = function.sig.inputs.first() {
            return Err(Error::new(input.span(), "the function takes no arguments"));
        }
    }
    let settings = Settings::parse(arguments, kind)?;
    let path = &settings.path;
    let mut builder = if settings.multi_thread {
        quote! { #path::runtime::Builder::new_multi_thread() }
    } else {
        quote! { #path::runtime::Builder::new_current_thread() }
    };
    if let Some((workers, _)) = settings.workers {
        builder = quote! { #builder.worker_threads(#workers) };
    }
    if let Some((paused, span)) = settings.start_paused {
        builder = quote_spanned! { span => #builder.start_paused(#paused) };
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
            .build()
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
    fn parse(arguments: TokenStream, kind: Kind) -> Result<Self> {
        let mut settings = Self {
            multi_thread: kind == Kind::Main,
            workers: None,
            start_paused: None,
            path: parse_quote! { ::selvedge },
        };
        let arguments = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(arguments)?;
        let mut seen: Vec<String> = Vec::new();
        for argument in &arguments {
            let Meta::NameValue(MetaNameValue { path, value, .. }) = argument else {
                let what = "an argument is `name = value`: flavor, worker_threads, start_paused \
                            or crate";
                return Err(Error::new(argument.span(), what));
            };
            let name = path.segments.last().map(|last| last.ident.to_string());
            let name = name
                .filter(|_| path.segments.len() == 1)
                .unwrap_or_default();
            if seen.contains(&name) {
                return Err(Error::new(path.span(), format!("`{name}` is set twice")));
            }
            match name.as_str() {
                "flavor" => settings.multi_thread = flavor(value)?,
                "worker_threads" => settings.workers = Some((workers(value)?, path.span())),
                "start_paused" => settings.start_paused = Some((flag(value)?, path.span())),
                "crate" => settings.path = text(value)?.parse()?,
                _ => {
                    let what = "unknown argument: there are flavor, worker_threads, start_paused \
                                and crate";
                    return Err(Error::new(path.span(), what));
                }
            }
            seen.push(name);
        }
        if let (Some((_, span)), false) = (settings.workers, settings.multi_thread) {
            let what = "worker_threads needs `flavor = \"multi_thread\"`";
            return Err(Error::new(span, what));
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

fn flavor(value: &Expr) -> Result<bool> {
    match text(value)?.value().as_str() {
        "multi_thread" => Ok(true),
        "current_thread" => Ok(false),
        other => {
            let what = format!("no flavor `{other}`: there are multi_thread and current_thread");
            Err(Error::new(value.span(), what))
        }
    }
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
