//! Finds the orderings and fences of a crate, and writes each as a choice made when the program runs.
//!
//! The source is parsed, but what is changed is its text, at the places that the parser gives: lines and comments stay
//! as they are. An ordering counts where it is the argument of a call: of an atomic's method, of a fence, or of a
//! function that hands it on, which is looked up to learn what it is for. Inside a macro's tokens, which have no
//! syntax of their own, the same is told from `name(.., Acquire, ..)`. An ordering somewhere else is reported as not
//! reached rather than left out in silence.
//!
//! A site's key is `crate/file/function#n`, the n-th ordering in that function, so that a line moved above changes
//! no key. Structural sites count apart: `#exchange1`, `#swap1`, and `#name` for those that a list gives.
use super::{
    list::Listed,
    mutants::{Kind, Order, kind_of, weaker},
    source::{Cfg, Module},
};
use anyhow::{Result, ensure};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};
use syn::{
    Expr, FnArg, ImplItem, Item, Pat, Stmt, TraitItem, Type, spanned::Spanned, visit::Visit,
};

/// A place that has mutants.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) key: String,
    pub(crate) line: usize,
    /// The file's place among the modules, as test names begin.
    pub(crate) module: String,
    /// The operation, in a word.
    pub(crate) operation: String,
    /// What is written there; `None` for a structural site.
    pub(crate) written: Option<Order>,
    pub(crate) mutants: Vec<String>,
}

/// What was found in a crate.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) sites: Vec<Site>,
    /// File and new text.
    pub(crate) files: Vec<(String, String)>,
    /// What looks like an ordering, and could not be made a choice.
    pub(crate) unreached: Vec<String>,
}

/// Rewrites all modules of the crate `name`.
pub(crate) fn rewrite(
    name: &str,
    modules: &[Module],
    cfg: &Cfg,
    listed: &[Listed],
) -> Result<Found> {
    let survey = Survey::of(modules, cfg);
    let mut found = Found::default();
    let mut used = HashSet::new();
    for module in modules {
        let mut finder = Finder {
            name,
            module,
            cfg,
            survey: &survey,
            words: Words::of(&module.syntax),
            scope: Vec::new(),
            counts: HashMap::new(),
            constant: false,
            listed,
            used: &mut used,
            edits: Vec::new(),
            found: &mut found,
        };
        finder.visit_file(&module.syntax);
        let edits = finder.edits;
        found
            .files
            .push((module.file.clone(), splice(&module.text, edits)));
    }
    let mut keys = HashSet::new();
    for site in &found.sites {
        ensure!(
            keys.insert(&site.key),
            "two sites have the key {}",
            site.key
        );
    }
    for entry in listed {
        ensure!(
            used.contains(&entry.site),
            "the structural mutant {} names a function or a text that is not there once",
            entry.site
        );
    }
    Ok(found)
}

/// Puts new text for ranges of old. An empty range is an insertion; of two at one place, the one noted first goes first.
fn splice(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = String::with_capacity(text.len() + 64 * edits.len());
    let mut at = 0;
    for (range, new) in edits {
        out.push_str(&text[at..range.start]);
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// What functions take orderings, and what for; what constants are orderings.
#[derive(Default)]
struct Survey {
    helpers: HashMap<(String, usize), Kind>,
    constants: HashMap<String, Order>,
}

impl Survey {
    fn of(modules: &[Module], cfg: &Cfg) -> Self {
        let mut surveyor = Surveyor {
            survey: Self::default(),
            cfg,
        };
        for module in modules {
            surveyor.visit_file(&module.syntax);
        }
        surveyor.survey
    }
}

struct Surveyor<'a> {
    survey: Survey,
    cfg: &'a Cfg,
}

impl Surveyor<'_> {
    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let arguments = signature.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(typed) => Some(typed),
            FnArg::Receiver(_) => None,
        });
        for (index, argument) in arguments.enumerate() {
            let Pat::Ident(pattern) = &*argument.pat else {
                continue;
            };
            if !is_ordering(&argument.ty) {
                continue;
            }
            let mut uses = Uses {
                name: &pattern.ident,
                kind: None,
            };
            uses.visit_block(body);
            let kind = uses.kind.unwrap_or(Kind::Unknown);
            self.survey
                .helpers
                .entry((signature.ident.to_string(), index))
                .and_modify(|known| *known = known.join(kind))
                .or_insert(kind);
        }
    }

    fn constant(&mut self, name: &syn::Ident, ty: &Type, value: &Expr) {
        if let (true, Expr::Path(path)) = (is_ordering(ty), value)
            && let Some(last) = path.path.segments.last()
            && let Some(order) = Order::named(&last.ident.to_string())
        {
            self.survey.constants.insert(name.to_string(), order);
        }
    }
}

fn is_ordering(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Ordering"))
}

impl<'a> Visit<'a> for Surveyor<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        if !self.cfg.keeps(attributes(item)) {
            return;
        }
        match item {
            Item::Fn(function) => self.function(&function.sig, &function.block),
            Item::Const(item) => self.constant(&item.ident, &item.ty, &item.expr),
            _ => {}
        }
        syn::visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        match item {
            ImplItem::Fn(function) => self.function(&function.sig, &function.block),
            ImplItem::Const(item) => self.constant(&item.ident, &item.ty, &item.expr),
            _ => {}
        }
        syn::visit::visit_impl_item(self, item);
    }
}

/// What an argument of type `Ordering` is handed to in a function's body.
struct Uses<'a> {
    name: &'a syn::Ident,
    kind: Option<Kind>,
}

impl Uses<'_> {
    fn note(&mut self, argument: &Expr, kind: Option<Kind>) {
        if matches!(argument, Expr::Path(path) if path.path.is_ident(self.name)) {
            let kind = kind.unwrap_or(Kind::Unknown);
            self.kind = Some(self.kind.map_or(kind, |known| known.join(kind)));
        }
    }
}

impl<'a> Visit<'a> for Uses<'_> {
    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        for (index, argument) in call.args.iter().enumerate() {
            self.note(argument, kind_of(&call.method.to_string(), index));
        }
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        for (index, argument) in call.args.iter().enumerate() {
            self.note(
                argument,
                callee(&call.func).and_then(|name| kind_of_call(&name, index)),
            );
        }
        syn::visit::visit_expr_call(self, call);
    }
}

/// The last word of a called path.
fn callee(function: &Expr) -> Option<String> {
    match function {
        Expr::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

/// As `kind_of`, for `fence(..)` and `AtomicUsize::load(&x, ..)`.
fn kind_of_call(name: &str, index: usize) -> Option<Kind> {
    match (name, index) {
        ("fence", 0) => Some(Kind::Fence),
        (_, 0) => None,
        (name, index) => kind_of(name, index - 1),
    }
}

/// The words that mean an ordering in one file.
struct Words {
    bare: HashMap<String, Order>,
    /// `Ordering`, and what it is imported as.
    types: HashSet<String>,
}

impl Words {
    fn of(file: &syn::File) -> Self {
        let mut words = Self {
            bare: HashMap::new(),
            types: HashSet::from(["Ordering".into()]),
        };
        words.visit_file(file);
        words
    }

    /// `parent` is the word before.
    fn tree(&mut self, parent: &str, tree: &syn::UseTree) {
        let mut bare = |name: String, word: String| {
            if name == "Ordering" || (name == "self" && parent == "Ordering") {
                self.types.insert(word);
            } else if let Some(order) = Order::named(&name) {
                self.bare.insert(word, order);
            }
        };
        match tree {
            syn::UseTree::Path(path) => self.tree(&path.ident.to_string(), &path.tree),
            syn::UseTree::Name(name) => bare(name.ident.to_string(), name.ident.to_string()),
            syn::UseTree::Rename(name) => bare(name.ident.to_string(), name.rename.to_string()),
            // Perhaps among them.
            syn::UseTree::Glob(_) => {
                for name in ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"] {
                    bare(name.into(), name.into());
                }
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.tree(parent, tree))
            }
        }
    }

    /// The ordering that these path segments name.
    fn order(&self, segments: &[String]) -> Option<Order> {
        match segments {
            [word] => self.bare.get(word).copied(),
            [.., ty, word] if self.types.contains(ty) => Order::named(word),
            _ => None,
        }
    }
}

impl<'a> Visit<'a> for Words {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.tree("", &item.tree);
    }
}

struct Finder<'a> {
    name: &'a str,
    module: &'a Module,
    cfg: &'a Cfg,
    survey: &'a Survey,
    words: Words,
    /// The function in which we are, from the outside.
    scope: Vec<String>,
    counts: HashMap<String, usize>,
    /// Inside a `const fn`, where no choice can be made when the program runs.
    constant: bool,
    listed: &'a [Listed],
    used: &'a mut HashSet<String>,
    edits: Vec<(Range<usize>, String)>,
    found: &'a mut Found,
}

impl<'a> Finder<'a> {
    fn key(&mut self, series: &str) -> String {
        let function = self.function();
        let count = self
            .counts
            .entry(format!("{function}#{series}"))
            .or_default();
        *count += 1;
        format!("{function}#{series}{count}")
    }

    fn function(&self) -> String {
        format!(
            "{}/{}/{}",
            self.name,
            self.module.file,
            self.scope.join("::")
        )
    }

    fn add(
        &mut self,
        key: String,
        line: usize,
        operation: &str,
        written: Option<Order>,
        mutants: Vec<String>,
    ) -> usize {
        self.found.sites.push(Site {
            key,
            line,
            module: self.module.path.join("::"),
            operation: operation.into(),
            written,
            mutants,
        });
        self.found.sites.len() - 1
    }

    /// Notes an ordering and gives its number; `None` where it can't be a choice.
    fn ordering(
        &mut self,
        line: usize,
        operation: &str,
        kind: Kind,
        written: Order,
    ) -> Option<usize> {
        if self.constant {
            self.unreached(line, &format!("{operation}({written}) in a const fn"));
            return None;
        }
        let key = self.key("");
        let mutants = weaker(kind, written)
            .iter()
            .map(|&how| how.into())
            .collect();
        Some(self.add(key, line, operation, Some(written), mutants))
    }

    fn unreached(&mut self, line: usize, what: &str) {
        self.found
            .unreached
            .push(format!("{}/{}:{line}: {what}", self.name, self.module.file));
    }

    fn resolve(&self, argument: &Expr) -> Option<Order> {
        let Expr::Path(path) = argument else {
            return None;
        };
        let segments: Vec<_> = path
            .path
            .segments
            .iter()
            .map(|s| s.ident.to_string())
            .collect();
        let constant = || self.survey.constants.get(segments.last()?).copied();
        self.words.order(&segments).or_else(constant)
    }

    fn arguments<'e>(
        &mut self,
        operation: &str,
        arguments: impl IntoIterator<Item = &'e Expr>,
        kind: impl Fn(usize) -> Option<Kind>,
    ) {
        for (index, argument) in arguments.into_iter().enumerate() {
            let own = kind(index);
            let helper = self
                .survey
                .helpers
                .get(&(operation.to_owned(), index))
                .copied();
            let Some(written) = self.resolve(argument) else {
                self.visit_expr(argument);
                continue;
            };
            let kind = own.or(helper).unwrap_or(Kind::Unknown);
            let span = argument.span();
            let Some(site) = self.ordering(span.start().line, operation, kind, written) else {
                continue;
            };
            let range = span.byte_range();
            self.edits.push((
                range.start..range.start,
                format!("crate::__orderings::pick({site}, "),
            ));
            self.edits.push((range.end..range.end, ")".into()));
        }
    }

    fn text(&self, range: Range<usize>) -> &'a str {
        &self.module.text[range]
    }

    /// Puts a choice around `range`: `instead` when the site is the mutant's.
    fn choose(&mut self, site: usize, range: Range<usize>, instead: &str, open: &str, close: &str) {
        let before = format!("{open}if crate::__orderings::on({site}) {{ {instead} }} else {{ ");
        self.edits.push((range.start..range.start, before));
        self.edits
            .push((range.end..range.end, format!(" }}{close}")));
    }

    /// An exchange replaced by a store.
    fn exchange(&mut self, call: &syn::ExprMethodCall) {
        let named = call.method == "compare_exchange" || call.method == "compare_exchange_weak";
        if !named || call.args.len() != 4 || self.constant {
            return;
        }
        let key = self.key("exchange");
        let line = call.span().start().line;
        let site = self.add(key, line, "exchange", None, vec!["stored".into()]);
        let receiver = self.text(call.receiver.span().byte_range());
        let old = self.text(call.args[0].span().byte_range());
        let new = self.text(call.args[1].span().byte_range());
        let instead = format!("{receiver}.store({new}, crate::__orderings::RELEASE); Ok({old})");
        self.choose(site, call.span().byte_range(), &instead, "(", ")");
    }

    /// Of stores that follow each other, each two neighbours in the other order.
    fn swaps(&mut self, block: &syn::Block) {
        if self.constant {
            return;
        }
        for run in block
            .stmts
            .chunk_by(|a, b| is_store(a) && is_store(b))
            .filter(|run| run.len() > 1)
        {
            let texts: Vec<_> = run
                .iter()
                .map(|store| self.text(store.span().byte_range()))
                .collect();
            let mut before = String::new();
            for (second, later) in run.iter().enumerate().skip(1) {
                let key = self.key("swap");
                let line = later.span().start().line;
                let site = self.add(key, line, "stores", None, vec!["swapped".into()]);
                let mut order = texts.clone();
                order.swap(second - 1, second);
                before += &format!(
                    "if crate::__orderings::on({site}) {{ {} }} else ",
                    order.join(" ")
                );
            }
            let (start, end) = (
                run[0].span().byte_range().start,
                run[run.len() - 1].span().byte_range().end,
            );
            self.edits.push((start..start, before + "{ "));
            self.edits.push((end..end, " }".into()));
        }
    }

    /// The structural mutants that the list has for this function.
    fn listed(&mut self, body: Range<usize>) {
        let function = self.function();
        let all = self.listed;
        for entry in all.iter().filter(|entry| {
            entry
                .site
                .rsplit_once('#')
                .is_some_and(|(place, _)| place == function)
        }) {
            let Some(at) = once(self.text(body.clone()), &entry.find) else {
                continue;
            };
            let range = body.start + at.start..body.start + at.end;
            let line = self.text(0..range.start).lines().count();
            let site = self.add(
                entry.site.clone(),
                line,
                "structure",
                None,
                vec!["changed".into()],
            );
            self.used.insert(entry.site.clone());
            let statement = entry.find.trim_end().ends_with([';', '}']);
            let (open, close) = if statement { ("", "") } else { ("(", ")") };
            self.choose(site, range, &entry.with, open, close);
        }
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.scope.push(name);
        visit(self);
        self.scope.pop();
    }

    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let outer = std::mem::replace(&mut self.constant, signature.constness.is_some());
        self.within(signature.ident.to_string(), |this| {
            let before = this.edits.len();
            this.listed(block.span().byte_range());
            if let (true, Some(word)) = (this.edits.len() > before, &signature.constness) {
                // No choice is made in a `const fn`, which nothing listed needs to be.
                this.edits.push((word.span().byte_range(), String::new()));
                this.constant = false;
            }
            this.visit_block(block);
        });
        self.constant = outer;
    }

    /// The tokens of a macro, in which `prefix` is the way to the crate's root.
    fn tokens(&mut self, tokens: TokenStream, prefix: &str) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            let TokenTree::Group(group) = token else {
                continue;
            };
            let name = match at.checked_sub(1).map(|before| &tokens[before]) {
                Some(TokenTree::Ident(name)) if group.delimiter() == Delimiter::Parenthesis => {
                    name.to_string()
                }
                _ => {
                    self.tokens(group.stream(), prefix);
                    continue;
                }
            };
            let method =
                at >= 2 && matches!(&tokens[at - 2], TokenTree::Punct(dot) if dot.as_char() == '.');
            let inner: Vec<_> = group.stream().into_iter().collect();
            let comma = |token: &TokenTree| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ',');
            for (index, argument) in inner.split(comma).enumerate() {
                let Some(written) = self.words.order(&segments(argument)) else {
                    self.tokens(argument.iter().cloned().collect(), prefix);
                    continue;
                };
                let kind = if method {
                    kind_of(&name, index)
                } else {
                    kind_of_call(&name, index)
                };
                let helper = self.survey.helpers.get(&(name.clone(), index)).copied();
                let kind = kind.or(helper).unwrap_or(Kind::Unknown);
                let (first, last) = (argument[0].span(), argument[argument.len() - 1].span());
                let range = first.byte_range().start..last.byte_range().end;
                if kind == Kind::Fence {
                    let callee = tokens[..at].iter().rev().take_while(|token| match token {
                        TokenTree::Ident(_) => true,
                        TokenTree::Punct(colon) => colon.as_char() == ':',
                        _ => false,
                    });
                    let start = callee
                        .last()
                        .map_or(range.start, |token| token.span().byte_range().start);
                    self.fence(
                        first.start().line,
                        written,
                        start,
                        group.span_open().byte_range(),
                        prefix,
                    );
                } else if let Some(site) = self.ordering(first.start().line, &name, kind, written) {
                    let before = format!("{prefix}::__orderings::pick({site}, ");
                    self.edits.push((range.start..range.start, before));
                    self.edits.push((range.end..range.end, ")".into()));
                }
            }
        }
    }

    /// A fence whose path begins at `start` and whose parenthesis is at `open`.
    fn fence(
        &mut self,
        line: usize,
        written: Order,
        start: usize,
        open: Range<usize>,
        prefix: &str,
    ) {
        let Some(site) = self.ordering(line, "fence", Kind::Fence, written) else {
            return;
        };
        self.edits.push((
            start..start,
            format!("{prefix}::__orderings::fenced({site}, "),
        ));
        self.edits.push((open, ", ".into()));
    }
}

/// The words of a path that is nothing else.
fn segments(tokens: &[TokenTree]) -> Vec<String> {
    let mut words = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(word) => words.push(word.to_string()),
            TokenTree::Punct(colon) if colon.as_char() == ':' => {}
            _ => return Vec::new(),
        }
    }
    words
}

fn is_store(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(Expr::MethodCall(call), Some(_)) if call.method == "store" && call.args.len() == 2)
}

/// Where `find` is in `text`, if it is there once; runs of white space are alike.
fn once(text: &str, find: &str) -> Option<Range<usize>> {
    let words: Vec<_> = find.split_whitespace().collect();
    let first = *words.first()?;
    let mut places = text.match_indices(first).filter_map(|(start, _)| {
        let mut at = start;
        for word in &words {
            let rest = &text[at..];
            at += rest.len() - rest.trim_start().len();
            at += text[at..].starts_with(word).then_some(word.len())?;
        }
        Some(start..at)
    });
    let place = places.next()?;
    places.next().is_none().then_some(place)
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        if !self.cfg.keeps(attributes(item)) {
            return;
        }
        match item {
            Item::Fn(function) => self.body(&function.sig, &function.block),
            Item::Impl(block) => {
                let name = match &*block.self_ty {
                    Type::Path(path) => {
                        path.path.segments.last().map(|last| last.ident.to_string())
                    }
                    _ => None,
                };
                let name = name.unwrap_or_else(|| "impl".into());
                self.within(name, |this| {
                    block
                        .items
                        .iter()
                        .for_each(|item| this.visit_impl_item(item))
                });
            }
            Item::Trait(block) => self.within(block.ident.to_string(), |this| {
                block
                    .items
                    .iter()
                    .for_each(|item| this.visit_trait_item(item));
            }),
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    self.within(module.ident.to_string(), |this| {
                        items.iter().for_each(|item| this.visit_item(item));
                    });
                }
            }
            Item::Macro(found) => {
                if let Some(items) = self.cfg.branch(&found.mac) {
                    items.iter().for_each(|item| self.visit_item(item));
                } else if let (Some(name), true) =
                    (&found.ident, found.mac.path.is_ident("macro_rules"))
                {
                    let tokens = found.mac.tokens.clone();
                    self.within(format!("{name}!"), |this| this.tokens(tokens, "$crate"));
                } else {
                    self.tokens(found.mac.tokens.clone(), "crate");
                }
            }
            // No call in a constant is made when the program runs.
            _ => {}
        }
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        match item {
            ImplItem::Fn(function) if self.cfg.keeps(&function.attrs) => {
                self.body(&function.sig, &function.block)
            }
            ImplItem::Macro(found) if self.cfg.keeps(&found.attrs) => {
                self.tokens(found.mac.tokens.clone(), "crate")
            }
            _ => {}
        }
    }

    fn visit_trait_item(&mut self, item: &'a TraitItem) {
        if let TraitItem::Fn(function) = item
            && self.cfg.keeps(&function.attrs)
            && let Some(block) = &function.default
        {
            self.body(&function.sig, block);
        }
    }

    fn visit_block(&mut self, block: &'a syn::Block) {
        self.swaps(block);
        syn::visit::visit_block(self, block);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        if self.cfg.keeps(&local.attrs) {
            syn::visit::visit_local(self, local);
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        let attributes: &[_] = match expr {
            Expr::Block(expr) => &expr.attrs,
            Expr::If(expr) => &expr.attrs,
            Expr::MethodCall(expr) => &expr.attrs,
            Expr::Call(expr) => &expr.attrs,
            _ => &[],
        };
        if self.cfg.keeps(attributes) {
            syn::visit::visit_expr(self, expr);
        }
    }

    fn visit_expr_const(&mut self, _: &'a syn::ExprConst) {}

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        self.exchange(call);
        self.visit_expr(&call.receiver);
        let name = call.method.to_string();
        for (index, argument) in call.args.iter().enumerate() {
            let handed_on = matches!(argument, Expr::Path(path) if path.path.get_ident()
                .is_some_and(|name| name.to_string().chars().all(|c| c.is_lowercase() || c == '_')));
            if kind_of(&name, index).is_some()
                && atomic(&name)
                && self.resolve(argument).is_none()
                && !handed_on
            {
                self.unreached(
                    argument.span().start().line,
                    &format!("{name}({})", self.text(argument.span().byte_range())),
                );
            }
        }
        self.arguments(&name, &call.args, |index| kind_of(&name, index));
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        let name = callee(&call.func).unwrap_or_default();
        if name == "fence"
            && call.args.len() == 1
            && let Some(written) = self.resolve(&call.args[0])
        {
            let span = call.span();
            let open = call.paren_token.span.open().byte_range();
            self.fence(
                span.start().line,
                written,
                span.byte_range().start,
                open,
                "crate",
            );
            return;
        }
        self.visit_expr(&call.func);
        if name != "compiler_fence" {
            self.arguments(&name, &call.args, |index| kind_of_call(&name, index));
        }
    }

    fn visit_macro(&mut self, found: &'a syn::Macro) {
        self.tokens(found.tokens.clone(), "crate");
    }
}

/// Whether a method is surely an atomic's: other types have `load`, `store` and `swap` as well.
fn atomic(name: &str) -> bool {
    name.starts_with("compare_exchange") || name.starts_with("fetch_")
}

#[cfg(test)]
mod tests;
