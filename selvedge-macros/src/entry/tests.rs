//! Tests of the messages of the attributes' errors.
use super::*;

/// Expands a function with these arguments, and returns the words of the error.
fn error(arguments: &str, item: &str, kind: Kind) -> String {
    let function = syn::parse_str::<ItemFn>(item).unwrap();
    let arguments = arguments.parse().unwrap();
    match in_a_runtime(arguments, function, kind, "::selvedge") {
        Ok(expanded) => panic!("the attribute accepts it: {expanded}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn wrong_argument_is_an_error_that_lists_the_right_ones() {
    let main = "async fn main() {}";
    for (arguments, words) in [
        ("flavour = \"multi_thread\"", "unknown argument"),
        ("flavor = \"many\"", "no flavor `many`"),
        ("flavor = 1", "expected a string"),
        ("flavor", "an argument is `name = value`"),
        ("local", "write `flavor = \"local\"`"),
        ("unhandled_panic = \"abort\"", "no policy `abort`"),
        ("unhandled_panic = true", "expected a string"),
        ("name = 7", "expected a string"),
        ("name = \" \"", "not white space"),
        ("name = \"a\", name = \"b\"", "set twice"),
        ("observe = true", "expected a string"),
        ("observe = \"\"", "no view ``: there are list"),
        ("observe = \"list,dumps\"", "no view `dumps`"),
        ("observe = \"list=x\"", "no view `list=x`"),
        ("observe = \"record=\"", "no view `record=`"),
        ("observe(list)", "an argument is `name = value`"),
        ("observe, observe = \"list\"", "`observe` is set twice"),
        (
            "flavor = \"local\", worker_threads = 2",
            "worker_threads needs",
        ),
        ("worker_threads = 0", "1 to 65,535"),
        ("worker_threads = \"2\"", "expected a number"),
        ("start_paused = 1", "expected true or false"),
        (
            "flavor = \"current_thread\", worker_threads = 2",
            "worker_threads needs",
        ),
        ("worker_threads = 2, worker_threads = 2", "set twice"),
    ] {
        let said = error(arguments, main, Kind::Main);
        assert!(said.contains(words), "{arguments}: {said}");
    }
}

#[test]
fn wrong_function_is_an_error() {
    for (item, kind, words) in [
        ("fn main() {}", Kind::Main, "not async"),
        ("async fn main(n: u32) {}", Kind::Main, "no arguments"),
        ("async fn a(n: u32) {}", Kind::Test, "no arguments"),
        ("#[test] async fn a() {}", Kind::Test, "a test already"),
    ] {
        let said = error("", item, kind);
        assert!(said.contains(words), "{item}: {said}");
    }
}

#[test]
fn refused_function_stays_beside_its_error() {
    let item = quote! { fn main() { other() } };
    let expanded = expand(TokenStream::new(), item, Kind::Main, "::selvedge").to_string();
    assert!(expanded.contains("compile_error") && expanded.contains("other"));
}

#[test]
fn test_runs_on_its_own_thread_unless_a_flavor_is_set() {
    let item = quote! { async fn a() {} };
    let expanded = |arguments: TokenStream, kind| {
        expand(arguments, item.clone(), kind, "::selvedge").to_string()
    };
    assert!(expanded(TokenStream::new(), Kind::Test).contains("new_current_thread"));
    assert!(expanded(TokenStream::new(), Kind::Main).contains("new_multi_thread"));
    let multi = quote! { flavor = "multi_thread", worker_threads = 3 };
    assert!(expanded(multi, Kind::Test).contains("worker_threads (3usize)"));
}

#[test]
fn path_of_the_runtime_is_the_given_one_or_that_of_crate() {
    let expanded = |arguments: TokenStream| {
        expand(arguments, quote! { async fn a() {} }, Kind::Main, "::tokio").to_string()
    };
    let without = expanded(TokenStream::new());
    assert!(without.contains(":: tokio :: runtime") && !without.contains("selvedge"));
    let with = expanded(quote! { crate = "::other" });
    assert!(with.contains(":: other :: runtime") && !with.contains("tokio"));
}

/// Returns the place of the error, as the compiler shows it.
fn place(arguments: &str) -> (usize, usize) {
    let function = syn::parse_str::<ItemFn>("async fn main() {}").unwrap();
    let arguments = arguments.parse().unwrap();
    let error = in_a_runtime(arguments, function, Kind::Main, "::selvedge").unwrap_err();
    let span = error.span();
    (span.start().column, span.end().column)
}

/// Fails if an error points at the whole attribute, or at another argument.
#[test]
fn error_points_at_its_argument() {
    for arguments in [
        "flavor = \"many\"",
        "flavor = \"local\", name = \"\"",
        "name = \"a\", local",
        "name = \"a\", worker_threads = 0",
        "name = \"a\", observe = \"no\"",
    ] {
        let last = arguments.rsplit([' ', ',']).next().unwrap();
        let wanted = (arguments.len() - last.len(), arguments.len());
        assert_eq!(place(arguments), wanted, "{arguments}");
    }
}

#[test]
fn views_are_set_by_the_builder() {
    let expanded = |arguments: TokenStream| {
        expand(arguments, quote! { async fn a() {} }, Kind::Main, "::tokio").to_string()
    };
    let words = |arguments| {
        let text = expanded(arguments);
        let begin = text.find("observe (").map(|at| at + "observe (".len());
        begin.map(|begin| text[begin..].split(')').next().unwrap().to_owned())
    };
    assert_eq!(words(quote! { observe }).unwrap(), "\"all\"");
    let given = quote! { observe = "list, record=/tmp/a b" };
    assert_eq!(words(given).unwrap(), "\"list, record=/tmp/a b\"");
    assert_eq!(words(quote! {}), None);
}

#[test]
fn local_flavor_builds_a_local_runtime() {
    let expanded = |arguments: TokenStream| {
        let item = quote! { async fn a() {} };
        expand(arguments, item, Kind::Test, "::selvedge").to_string()
    };
    let local = expanded(quote! { flavor = "local", name = "near" });
    assert!(local.contains("new_current_thread") && local.contains("build_local"));
    assert!(local.contains("name (\"near\")"), "{local}");
    let policy = expanded(quote! { unhandled_panic = "shutdown_runtime" });
    assert!(
        policy.contains("UnhandledPanic :: ShutdownRuntime"),
        "{policy}"
    );
    assert!(!policy.contains("build_local"));
}
