//! `select!`: the branches as the user wrote them, and the block that they expand to.
//!
//! For two branches this is the block:
//!
//! ```text
//! {
//!     enum Selected<B0, B1> { B0(B0), B1(B1), Disabled }
//!     let mut output = {                     // mutable for `ref mut` in a pattern
//!         let mut disabled = 0_u64;          // a bit for each branch
//!         if !condition { disabled |= 1; }   // the preconditions, before any future is made
//!         let future0 = a;
//!         let future1 = b;
//!         let mut future1 = pin!(future1);   // in reverse, so that `a` is dropped first
//!         let mut future0 = pin!(future0);   // a whole local moves, so its room is free again
//!         poll_fn(|cx| ...).await            // polls each branch that is not disabled
//!     };                                     // the futures are dropped
//!     match output { Selected::B0(pattern) => handler, ... }
//! }
//! ```
//!
//! 1. A branch is disabled by its precondition, or by an output that its pattern refuses. So no
//!    future is polled after its output.
//! 2. The poll compares an output with the *shape* of the pattern: the pattern without the words
//!    `mut` and `ref`. The comparison is by reference, so it moves nothing. The last `match` binds
//!    the pattern's names.
//! 3. A handler runs after the futures were dropped, in the code of the caller. So the handler may
//!    borrow what the futures borrowed, and may await, return and break.
//! 4. Each part of a branch keeps its spans, and the calls that the macro makes on a future have
//!    that future's span. So the compiler's errors point at the user's lines.
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Block, Error, Expr, Ident, Pat, Result, Token,
    parse::{Parse, ParseStream, Parser},
    spanned::Spanned,
    token::Brace,
    visit_mut::{self, VisitMut},
};

/// The most branches: as many as a `u64` has bits.
const MAX_BRANCHES: usize = 64;

/// The arguments of `select!`.
struct Select {
    biased: bool,
    branches: Vec<Branch>,
    otherwise: Option<TokenStream>,
}

/// `pattern = future, if condition => handler`
struct Branch {
    pattern: Pat,
    future: Expr,
    condition: Option<Expr>,
    handler: TokenStream,
}

/// Expands `path; branches`, where the path is that of the crate `selvedge`.
pub(crate) fn expand(arguments: TokenStream) -> TokenStream {
    let mut path = TokenStream::new();
    let mut tokens = arguments.into_iter();
    for token in tokens.by_ref() {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ';' => break,
            _ => path.extend([token]),
        }
    }
    match Select::parse.parse2(tokens.collect()) {
        Ok(select) => select.expand(&path),
        Err(error) => error.into_compile_error(),
    }
}

impl Parse for Select {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut select = Self {
            biased: false,
            branches: Vec::new(),
            otherwise: None,
        };
        if input.peek(Ident) && input.peek2(Token![;]) {
            let word: Ident = input.parse()?;
            if word != "biased" {
                return Err(Error::new(word.span(), "expected `biased` before this `;`"));
            }
            input.parse::<Token![;]>()?;
            select.biased = true;
        }
        if input.is_empty() {
            let what = "select! needs a branch: `pattern = future => handler`";
            return Err(input.error(what));
        }
        while !input.is_empty() {
            if input.peek(Token![else]) {
                input.parse::<Token![else]>()?;
                input.parse::<Token![=>]>()?;
                select.otherwise = Some(handler(input)?);
                if !input.is_empty() {
                    return Err(input.error("`else` is the last branch"));
                }
                break;
            }
            let branch: Branch = input.parse()?;
            if select.branches.len() == MAX_BRANCHES {
                let what = format!("select! has at most {MAX_BRANCHES} branches");
                return Err(Error::new(branch.pattern.span(), what));
            }
            select.branches.push(branch);
        }
        Ok(select)
    }
}

impl Parse for Branch {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let pattern = Pat::parse_multi_with_leading_vert(input)?;
        if input.peek(Token![=>]) {
            return Err(input.error("expected `=` and a future before this"));
        }
        input.parse::<Token![=]>()?;
        let future = input.parse()?;
        let mut condition = None;
        if input.peek(Token![,]) {
            input.parse::<Token![,]>()?;
            input.parse::<Token![if]>()?;
            condition = Some(input.parse()?);
        }
        input.parse::<Token![=>]>()?;
        let handler = handler(input)?;
        Ok(Self {
            pattern,
            future,
            condition,
            handler,
        })
    }
}

/// Parses a handler: a block, or an expression up to a comma or the end of the macro.
fn handler(input: ParseStream<'_>) -> Result<TokenStream> {
    let is_block = input.peek(Brace);
    let handler = if is_block {
        let block: Block = input.parse()?;
        quote! { #block }
    } else {
        let expression: Expr = input.parse()?;
        quote! { #expression }
    };
    let is_last = input.is_empty();
    if input.peek(Token![,]) || !(is_block || is_last) {
        input.parse::<Token![,]>()?;
    }
    Ok(handler)
}

/// Finds whether a pattern has a `&`.
struct HasReference(bool);

impl VisitMut for HasReference {
    fn visit_pat_reference_mut(&mut self, _: &mut syn::PatReference) {
        self.0 = true;
    }
}

/// Removes the bindings of a pattern, and keeps the parts that it compares.
struct Shape {
    /// Whether names that look like variables become `_`. If not, the pattern is matched by
    /// reference, and a name stays, as it may be that of a constant.
    without_names: bool,
}

impl VisitMut for Shape {
    fn visit_pat_mut(&mut self, pattern: &mut Pat) {
        visit_mut::visit_pat_mut(self, pattern);
        let Pat::Ident(name) = pattern else { return };
        let is_variable = name.by_ref.is_some()
            || name.mutability.is_some()
            || name.subpat.is_some()
            || !name.ident.to_string().starts_with(char::is_uppercase);
        name.by_ref = None;
        name.mutability = None;
        if self.without_names && is_variable {
            *pattern = match name.subpat.take() {
                Some((_, shape)) => *shape,
                None => Pat::Verbatim(quote! { _ }),
            };
        }
    }

    fn visit_field_pat_mut(&mut self, field: &mut syn::FieldPat) {
        // `{ mut a }` is `{ a: mut a }`.
        if field.colon_token.is_none() && self.without_names {
            field.colon_token = Some(Token![:](field.span()));
            *field.pat = Pat::Verbatim(quote! { _ });
        } else {
            visit_mut::visit_field_pat_mut(self, field);
        }
    }

    fn visit_expr_mut(&mut self, _: &mut Expr) {}
}

impl Branch {
    /// Returns the `match` by which a poll compares `output` with the pattern. If `output` does not
    /// match the pattern, the poll continues with the next branch.
    fn comparison(&self, output: &Ident) -> TokenStream {
        let mut pattern = self.pattern.clone();
        let mut has_reference = HasReference(false);
        has_reference.visit_pat_mut(&mut pattern);
        let HasReference(without_names) = has_reference;
        Shape { without_names }.visit_pat_mut(&mut pattern);
        // The edition 2024 does not allow a pattern that has a `&` in a match by reference.
        let place = match without_names {
            true => quote! { #output },
            false => quote! { &#output },
        };
        quote! {
            #[allow(unused_variables, unreachable_patterns, clippy::all)]
            match #place {
                #pattern => {}
                _ => continue,
            }
        }
    }
}

impl Select {
    fn expand(&self, path: &TokenStream) -> TokenStream {
        let Some(first) = self.branches.first() else {
            return self.otherwise.clone().unwrap_or_default();
        };
        let here = Span::mixed_site();
        let name = |text: &str| Ident::new(text, here);
        let (selected, output) = (name("__SelvedgeSelected"), name("output"));
        let (disabled, pending) = (name("disabled"), name("pending"));
        let (cx, turn, branch) = (name("cx"), name("turn"), name("branch"));
        let enabled = name("enabled");
        let count = self.branches.len();
        let variants: Vec<_> = (0..count)
            .map(|n| format_ident!("B{n}", span = here))
            .collect();
        let pinned: Vec<_> = (0..count)
            .map(|n| format_ident!("future{n}", span = here))
            .collect();
        let bits: Vec<_> = (0..count).map(|n| 1_u64 << n).collect();

        let conditions = self.branches.iter().zip(&bits).filter_map(|(branch, bit)| {
            let condition = branch.condition.as_ref()?;
            Some(quote! {
                let #enabled: bool = #condition;
                if !#enabled {
                    #disabled |= #bit;
                }
            })
        });
        let made = self.branches.iter().zip(&pinned).map(|(branch, name)| {
            let future = &branch.future;
            quote! { let #name = #future; }
        });
        let pins = (0..count).rev().map(|n| {
            let name = &pinned[n];
            let span = self.branches[n].future.span().resolved_at(here);
            let future = quote_spanned! { span =>
                ::core::future::IntoFuture::into_future(#name)
            };
            quote! { let mut #name = ::core::pin::pin!(#future); }
        });
        let polls = self.branches.iter().enumerate().map(|(n, branch)| {
            let (future, variant, bit) = (&pinned[n], &variants[n], bits[n]);
            let comparison = branch.comparison(&output);
            quote! {
                #n => {
                    if #disabled & #bit != 0 {
                        continue;
                    }
                    let #output = match ::core::future::Future::poll(#future.as_mut(), #cx) {
                        ::core::task::Poll::Ready(#output) => #output,
                        ::core::task::Poll::Pending => {
                            #pending = true;
                            continue;
                        }
                    };
                    #disabled |= #bit;
                    #comparison
                    return ::core::task::Poll::Ready(#selected::#variant(#output));
                }
            }
        });
        let start = match self.biased {
            true => quote! { 0 },
            false => quote! { #path::select::first_of(#count) },
        };
        let handlers = self
            .branches
            .iter()
            .zip(&variants)
            .map(|(branch, variant)| {
                let Branch {
                    pattern, handler, ..
                } = branch;
                quote! { #selected::#variant(#pattern) => #handler, }
            });
        let otherwise = match &self.otherwise {
            Some(handler) => quote! { #handler },
            None => {
                let span = first.pattern.span().resolved_at(here);
                quote_spanned! { span => #path::select::all_disabled() }
            }
        };
        quote! {{
            #[allow(dead_code, clippy::all)]
            enum #selected<#(#variants),*> {
                #(#variants(#variants),)*
                Disabled,
            }
            #[allow(unused_mut, clippy::all)]
            let mut #output = {
                #[allow(unused_mut)]
                let mut #disabled = 0_u64;
                #(#conditions)*
                #(#made)*
                #(#pins)*
                let #output = ::core::future::poll_fn(|#cx| {
                    if #path::select::must_yield(#cx) {
                        return ::core::task::Poll::Pending;
                    }
                    let mut #pending = false;
                    let #turn: usize = #start;
                    for #branch in 0..#count {
                        match (#turn + #branch) % #count {
                            #(#polls)*
                            _ => ::core::unreachable!(),
                        }
                    }
                    match #pending {
                        true => ::core::task::Poll::Pending,
                        false => ::core::task::Poll::Ready(#selected::Disabled),
                    }
                })
                .await;
                #output
            };
            match #output {
                #(#handlers)*
                #selected::Disabled => #otherwise,
                #[allow(unreachable_patterns)]
                _ => ::core::unreachable!("the poll has compared the output with the pattern"),
            }
        }}
    }
}

#[cfg(test)]
mod tests;
