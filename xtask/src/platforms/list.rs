//! The platforms that `cargo xtask platforms` knows.
use crate::cases::end_of;
use anyhow::{Context, Result, bail, ensure};
use project::{
    debian::{NEWEST_RUST, Packages},
    workspace::{output_of, succeeds},
};
use std::{fs, os::unix::process::CommandExt, path::Path, process::Command, time::Duration};

/// A machine, and how its programs are built and run here.
pub(super) struct Platform {
    pub(super) name: &'static str,
    /// The machine, and how it is tested. The page has this text as a sentence.
    pub(super) what: &'static str,
    /// The targets' names. There is none for this machine.
    pub(super) targets: &'static [&'static str],
    pub(super) build: Build,
    /// Packages that are unpacked: what programs are linked with, and an emulator.
    pub(super) packages: &'static [Packages],
    /// Returns the flags with which rustc links the target's programs. It takes the folder that has
    /// the folders of `packages`.
    pub(super) flags: fn(&Path) -> String,
    /// Returns the words before a program's name that start the program.
    pub(super) runner: fn(&Path) -> Vec<String>,
    /// Makes what the linker and the runner need and no package has.
    pub(super) prepare: fn(&Path) -> Result<()>,
    /// Where the crates are only checked: the tests that are built and run all the same. Each list
    /// has a crate's name and the arguments of `cargo test` that choose among its tests.
    pub(super) tested: &'static [(&'static str, &'static [&'static str])],
    /// As `tested`, but with a further cfg, which stands before the crate's name.
    pub(super) also: &'static [(&'static str, (&'static str, &'static [&'static str]))],
    /// The names of tests that are left out, each list with the reason. A test is left out, too, if
    /// its name contains one of these names.
    pub(super) skipped: &'static [(&'static str, &'static [&'static str])],
    /// Whether the examples run, too.
    pub(super) examples: bool,
    /// Crates that are not built, each list with the reason.
    pub(super) without: &'static [(&'static str, &'static [&'static str])],
}

/// How the crates of a platform are built.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Build {
    /// All tests but those of the docs, with the oldest Rust and Debian's std.
    Tests,
    /// The chosen tests, with the oldest Rust and Debian's std. All crates are checked.
    Chosen,
    /// The chosen tests, with the newer Rust, which compiles the target's std first. All crates are
    /// checked.
    Check,
    /// As `Check`, but without `std`: only the parts that do not need it.
    NoStd,
}

/// A platform that is only checked needs no more than the compiler.
pub(super) const CHECKED: Platform = Platform {
    name: "",
    what: "",
    targets: &[],
    build: Build::Check,
    packages: &[],
    flags: |_| String::new(),
    runner: |_| Vec::new(),
    prepare: |_| Ok(()),
    tested: &[],
    also: &[],
    skipped: &[],
    examples: false,
    without: &[],
};

const QEMU: Packages = Packages {
    folder: "qemu",
    rust: &[],
    others: &[
        "qemu-user",
        "libcapstone4",
        "libglib2.0-0",
        "libnuma1",
        "liburing2",
    ],
};

/// The tests that an emulator runs within minutes: the unit tests, and those of sockets, files and
/// children. The procedural macros run in the compiler, so their own tests are not the platform's.
const EMULATED: &[(&str, &[&str])] = &[
    ("sync-shim", &["--lib"]),
    ("queue-spmc", &["--lib"]),
    ("queue-global", &["--lib"]),
    ("waker-vtable", &["--lib"]),
    ("task-header", &["--lib"]),
    ("coop-budget", &["--lib"]),
    ("task-set", &["--lib"]),
    ("task-sync", &["--lib"]),
    ("net-driver", &["--lib", "--test=tcp", "--test=udp"]),
    ("task-io", &["--lib"]),
    ("worker-idle", &["--lib"]),
    ("timer-wheel", &["--lib"]),
    ("blocking-threads", &["--lib"]),
    ("task-trace", &["--lib"]),
    ("worker-queue", &["--lib"]),
    ("sched-group", &["--lib"]),
    ("sched-monitor", &["--lib", "--test=stack"]),
    ("process-scheduler", &["--lib"]),
    ("process-cluster", &["--lib", "--test=cluster"]),
    ("blocking-fs", &["--lib", "--test=part", "--test=pool"]),
    (
        "child-process",
        &["--lib", "--test=child", "--test=threads"],
    ),
    ("selvedge-executor", &["--lib"]),
    (
        "selvedge",
        &[
            "--test=fs",
            "--test=homes",
            "--test=macros",
            "--test=net",
            "--test=sync",
        ],
    ),
    ("selvedge-hyper", &["--lib", "--test=http1"]),
    ("selvedge-top", &["--lib"]),
    ("selvedge-sim", &["--lib"]),
];

/// The tests of the parts whose code depends on the order of bytes or on the width of a word, and
/// of sockets.
const PARTS: &[(&str, &[&str])] = &[
    ("sync-shim", &["--lib"]),
    ("queue-spmc", &["--lib"]),
    ("queue-global", &["--lib"]),
    ("timer-wheel", &["--lib"]),
    ("task-header", &["--lib"]),
    ("task-sync", &["--lib"]),
    ("coop-budget", &["--lib"]),
    ("net-driver", &["--lib", "--test=tcp", "--test=udp"]),
    ("process-cluster", &["--lib"]),
];

const SKIPPED: &[(&str, &[&str])] = &[(
    "starts another program of the platform, which this kernel does not run",
    &[
        "a_count_that_reaches_the_sign_bit_aborts",
        "a_freed_block_is_the_next_of_its_size",
        "blocks_beyond_the_depots_limit_are_freed",
        "blocks_freed_by_another_thread_come_back_each_once",
        "blocks_of_one_size_leave_room_for_the_others",
        "locked_depot_makes_no_thread_wait",
        "program_chat_drops_a_slow_reader_with_a_message",
        "program_chat_ends_gracefully_at_an_interrupt",
        "program_chat_has_rooms_and_names",
        "program_echo_serves_many_clients_and_nc",
        "signal_of_another_sender_reaches_the_previous_handler",
    ],
)];

/// A linker for Windows.
const MINGW: Packages = Packages {
    folder: "mingw",
    rust: &[],
    others: &[
        "binutils-mingw-w64-x86-64",
        "gcc-mingw-w64-base",
        "gcc-mingw-w64-x86-64-win32",
        "gcc-mingw-w64-x86-64-win32-runtime",
        "libz-mingw-w64",
        "mingw-w64-common",
        "mingw-w64-x86-64-dev",
    ],
};

const WINE: Packages = Packages {
    folder: "wine",
    rust: &[],
    others: &["libwine", "libunwind8", "wine64"],
};

/// Returns the words that run a program for Windows. The program, and Wine's own programs, look for
/// libraries in the folder of the path, too.
fn wine(work: &Path) -> Vec<String> {
    let folder = |name: &str| work.join(name).display().to_string();
    let words = [
        format!(
            "LD_LIBRARY_PATH={}",
            folder("wine/usr/lib/x86_64-linux-gnu")
        ),
        format!("WINEPREFIX={}", folder("wine-prefix")),
        "WINEDEBUG=-all".into(),
        "WINEDLLOVERRIDES=mscoree,mshtml=".into(),
        format!("WINEPATH=Z:{}", folder("wine-library").replace('/', "\\")),
        folder("wine/usr/lib/wine/wine64"),
    ];
    ["env".into()].into_iter().chain(words).collect()
}

/// Makes a library of Windows that Wine does not have, and that std asks for random bytes. Puts
/// another one beside it, which Wine needs and expects to be installed. Wine starts its server by a
/// script, which looks only for an installed one: that script gets a text of ours. Then it makes
/// the folder that Wine uses as a disk.
fn prepare_wine(work: &Path) -> Result<()> {
    let folder = work.join("wine-library");
    fs::create_dir_all(&folder)?;
    let zlib = work.join("mingw/usr/x86_64-w64-mingw32/lib/zlib1.dll");
    fs::copy(&zlib, folder.join("zlib1.dll")).context("zlib1.dll")?;
    let source = folder.join("prng.c");
    let text = "#include <windows.h>\n\
                BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);\n\
                BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {\n\
                    return SystemFunction036(bytes, (ULONG)count);\n\
                }\n";
    fs::write(&source, text)?;
    let mut gcc = Command::new(work.join("mingw/usr/bin/x86_64-w64-mingw32-gcc-win32"));
    gcc.arg("-shared").arg("-o");
    gcc.arg(folder.join("bcryptprimitives.dll")).arg(&source);
    ensure!(
        succeeds(gcc.arg("-ladvapi32"))?,
        "the library does not build"
    );
    let server = "#!/bin/sh\nexec \"$(dirname \"$0\")/wineserver64\" -p0 \"$@\"\n";
    fs::write(work.join("wine/usr/lib/wine/wineserver"), server)?;
    let prefix = work.join("wine-prefix");
    if !prefix.exists() {
        let words = wine(work);
        let mut boot = Command::new(&words[0]);
        boot.args(&words[1..]).args(["wineboot", "-i"]);
        let mut boot = boot.process_group(0).spawn().context("env")?;
        let end = end_of(&mut boot, Duration::from_secs(480))?;
        if !end.is_some_and(|status| status.success()) {
            fs::remove_dir_all(&prefix)?; // Else the next call would take it for complete.
            bail!("Wine does not start");
        }
    }
    Ok(())
}

/// A function of glibc that gcc's unwinder calls, for musl: it finds the table of the unwinder for
/// an address. And the functions that the unwinder has as weak symbols, so that they are linked.
const FIND_OBJECT: &str = "\
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
void *const weak_of_unwinder[] = { pthread_once, pthread_mutex_lock, pthread_mutex_unlock,
    pthread_key_create, pthread_getspecific, pthread_setspecific };
struct search { unsigned long at; struct dl_find_object *found; };
static int look(struct dl_phdr_info *object, size_t size, void *data) {
    struct search *search = data;
    struct dl_find_object found = { 0 };
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        char *start = (char *)(object->dlpi_addr + part->p_vaddr), *end = start + part->p_memsz;
        if (part->p_type == PT_GNU_EH_FRAME) found.dlfo_eh_frame = start;
        if (part->p_type == PT_LOAD && search->at - (unsigned long)start < part->p_memsz)
            found.dlfo_map_start = start, found.dlfo_map_end = end;
    }
    if (!found.dlfo_map_start || !found.dlfo_eh_frame) return 0;
    *search->found = found;
    return 1;
}
int _dl_find_object(void *at, struct dl_find_object *found) {
    struct search search = { (unsigned long)at, found };
    return dl_iterate_phdr(look, &search) ? 0 : -1;
}
";

/// Writes the paths of the unpacked library into the file by which gcc links with musl. Gives gcc's
/// own unwinder the name of the one that rustc links with, and a function that it needs.
fn prepare_musl(work: &Path) -> Result<()> {
    let library = work.join("musl/usr/lib/x86_64-linux-musl");
    let specs = fs::read_to_string(library.join("musl-gcc.specs"))?;
    let root = format!(" {}/usr/", work.join("musl").display());
    let specs = specs
        .replace(" /usr/", &root)
        .replace("-L/usr/", &format!("-L{}", root.trim()));
    fs::write(work.join("musl/specs"), specs)?;
    let unwinder = output_of(Command::new("gcc").arg("-print-file-name=libgcc_eh.a"))?;
    let own = library.join("libunwind.a");
    fs::copy(unwinder.trim(), &own).context("libgcc_eh.a")?;
    let (source, object) = (work.join("musl/find.c"), work.join("musl/find.o"));
    fs::write(&source, FIND_OBJECT)?;
    let mut gcc = Command::new("gcc");
    let built = succeeds(gcc.args(["-O1", "-c", "-o"]).arg(&object).arg(&source))?
        && succeeds(Command::new("ar").arg("rs").arg(own).arg(&object))?;
    ensure!(built, "the unwinder's function does not build");
    Ok(())
}

/// The interpreter of programs for WebAssembly.
const WASMI: &str = "2.0.0";

/// Threads that an old libc for WASI does not even refuse: the newer one of rustup's std does.
const NO_THREADS: &str = "\
#![feature(no_core, lang_items)]
#![no_core]
#[lang = \"pointee_sized\"] pub trait PointeeSized {}
#[lang = \"meta_sized\"] pub trait MetaSized: PointeeSized {}
#[lang = \"sized\"] pub trait Sized: MetaSized {}
#[lang = \"copy\"] pub trait Copy {}
impl Copy for i32 {}
#[no_mangle] pub extern \"C\" fn pthread_attr_init(_: i32) -> i32 { 0 }
#[no_mangle] pub extern \"C\" fn pthread_attr_destroy(_: i32) -> i32 { 0 }
#[no_mangle] pub extern \"C\" fn pthread_attr_setstacksize(_: i32, _: i32) -> i32 { 0 }
#[no_mangle] pub extern \"C\" fn pthread_create(_: i32, _: i32, _: i32, _: i32) -> i32 { 58 }
#[no_mangle] pub extern \"C\" fn pthread_join(_: i32, _: i32) -> i32 { 58 }
#[no_mangle] pub extern \"C\" fn pthread_detach(_: i32) -> i32 { 58 }
";

/// Builds the interpreter, and the object of `NO_THREADS`.
fn prepare_wasm(work: &Path) -> Result<()> {
    let root = work.join(format!("wasmi-{WASMI}"));
    if !root.join("bin/wasmi").exists() {
        let mut install = Command::new("cargo");
        install.args([
            "install",
            "--quiet",
            "--locked",
            "wasmi_cli",
            "--version",
            WASMI,
        ]);
        // A flag for this workspace's crates is none for the interpreter's.
        install.current_dir(work).env_remove("RUSTFLAGS");
        install
            .arg("--target-dir")
            .arg(work.join("wasmi-target"))
            .arg("--root")
            .arg(&root);
        ensure!(succeeds(&mut install)?, "the interpreter does not build");
        fs::remove_dir_all(work.join("wasmi-target"))?;
    }
    let source = work.join("wasm/no_threads.rs");
    fs::write(&source, NO_THREADS)?;
    let newest = work.join(NEWEST_RUST.folder).join("usr");
    let mut rustc = Command::new(newest.join("bin/rustc"));
    rustc
        .env("LD_LIBRARY_PATH", newest.join("lib/x86_64-linux-gnu"))
        .env("RUSTC_BOOTSTRAP", "1")
        .args([
            "--edition=2021",
            "--crate-type=lib",
            "--emit=obj",
            "--cap-lints=allow",
        ])
        .args(["-Cpanic=abort", "--target=wasm32-wasip1", "-o"])
        .arg(work.join("wasm/no_threads.o"))
        .arg(source);
    ensure!(succeeds(&mut rustc)?, "the object does not build");
    Ok(())
}

/// Returns the flags that link with the compiler for another processor, which is unpacked.
fn cross(work: &Path, folder: &str, triple: &str) -> String {
    let root = work.join(folder);
    let root = root.display();
    format!("-Clinker={root}/usr/bin/{triple}-gcc-12 -Clink-arg=--sysroot={root}")
}

/// Returns the words that run a program for another processor. Its libraries are in `folder`. It
/// does not get the variable by which the emulator finds the emulator's own libraries.
fn qemu(work: &Path, processor: &str, folder: &str, triple: &str) -> Vec<String> {
    let qemu = work.join(format!("qemu/usr/bin/qemu-{processor}"));
    let libraries = work.join(folder).join("usr").join(triple);
    let words = [&*qemu.to_string_lossy(), "-L", &libraries.to_string_lossy()].map(str::to_owned);
    [&words[..], &["-U".into(), "LD_LIBRARY_PATH".into()]].concat()
}

pub(super) const PLATFORMS: &[Platform] = &[
    Platform {
        name: "msrv",
        what: "x86-64 Linux with Rust 1.85, tested",
        build: Build::Tests,
        ..CHECKED
    },
    Platform {
        name: "i686",
        what: "32-bit x86 Linux with Rust 1.85, tested on this processor",
        targets: &["i686-unknown-linux-gnu"],
        build: Build::Tests,
        packages: &[
            Packages {
                folder: "i686-std",
                rust: &["libstd-rust-web-dev:i386"],
                others: &[],
            },
            Packages {
                folder: "i686-libc",
                rust: &[],
                others: &[
                    "lib32gcc-12-dev",
                    "lib32gcc-s1",
                    "libc6-dev-i386",
                    "libc6-i386",
                ],
            },
        ],
        flags: |work| {
            let root = work.join("i686-libc");
            let root = root.display();
            // The program names its loader and its libraries by their paths below `root`, as this
            // machine need not have them elsewhere.
            format!(
                "-Clinker=gcc -Clink-arg=-m32 -Clink-arg=--sysroot={root} \
                 -Clink-arg=-B{root}/usr/lib/gcc/x86_64-linux-gnu/12/32 \
                 -Clink-arg=-Wl,--dynamic-linker={root}/lib32/ld-linux.so.2 \
                 -Clink-arg=-Wl,-rpath,{root}/lib32:{root}/usr/lib32"
            )
        },
        // The poller of other systems, whose keys have 32 bits here.
        also: &[("selvedge_polling", ("net-driver", &["--lib", "--tests"]))],
        ..CHECKED
    },
    Platform {
        name: "aarch64",
        what: "64-bit Arm Linux, checked, and tested under qemu",
        targets: &["aarch64-unknown-linux-gnu"],
        build: Build::Chosen,
        packages: &[
            QEMU,
            Packages {
                folder: "aarch64-std",
                rust: &["libstd-rust-web-dev:arm64"],
                others: &[],
            },
            Packages {
                folder: "aarch64-libc",
                rust: &[],
                others: &[
                    "binutils-aarch64-linux-gnu",
                    "gcc-12-aarch64-linux-gnu",
                    "libc6-arm64-cross",
                    "libc6-dev-arm64-cross",
                    "libgcc-12-dev-arm64-cross",
                    "libgcc-s1-arm64-cross",
                ],
            },
        ],
        flags: |work| cross(work, "aarch64-libc", "aarch64-linux-gnu"),
        runner: |work| qemu(work, "aarch64", "aarch64-libc", "aarch64-linux-gnu"),
        tested: EMULATED,
        examples: true,
        skipped: SKIPPED,
        ..CHECKED
    },
    Platform {
        name: "s390x",
        what: "IBM Z Linux, big-endian, checked, and parts tested under qemu",
        targets: &["s390x-unknown-linux-gnu"],
        build: Build::Chosen,
        packages: &[
            QEMU,
            Packages {
                folder: "s390x-std",
                rust: &["libstd-rust-web-dev:s390x"],
                others: &[],
            },
            Packages {
                folder: "s390x-libc",
                rust: &[],
                others: &[
                    "binutils-s390x-linux-gnu",
                    "gcc-12-s390x-linux-gnu",
                    "libc6-s390x-cross",
                    "libc6-dev-s390x-cross",
                    "libgcc-12-dev-s390x-cross",
                    "libgcc-s1-s390x-cross",
                ],
            },
        ],
        flags: |work| cross(work, "s390x-libc", "s390x-linux-gnu"),
        runner: |work| qemu(work, "s390x", "s390x-libc", "s390x-linux-gnu"),
        tested: PARTS,
        skipped: SKIPPED,
        ..CHECKED
    },
    Platform {
        name: "armv7",
        what: "32-bit Arm Linux, checked, and parts tested under qemu",
        targets: &["armv7-unknown-linux-gnueabihf"],
        build: Build::Chosen,
        packages: &[
            QEMU,
            Packages {
                folder: "armv7-std",
                rust: &["libstd-rust-web-dev:armhf"],
                others: &[],
            },
            Packages {
                folder: "armv7-libc",
                rust: &[],
                others: &[
                    "binutils-arm-linux-gnueabihf",
                    "gcc-12-arm-linux-gnueabihf",
                    "libc6-armhf-cross",
                    "libc6-dev-armhf-cross",
                    "libgcc-12-dev-armhf-cross",
                    "libgcc-s1-armhf-cross",
                ],
            },
        ],
        flags: |work| cross(work, "armv7-libc", "arm-linux-gnueabihf"),
        runner: |work| qemu(work, "arm", "armv7-libc", "arm-linux-gnueabihf"),
        tested: PARTS,
        skipped: SKIPPED,
        ..CHECKED
    },
    Platform {
        name: "musl",
        what: "x86-64 Linux with musl, checked, and parts tested on this processor",
        targets: &["x86_64-unknown-linux-musl"],
        packages: &[Packages {
            folder: "musl",
            rust: &[],
            others: &["musl-dev", "musl-tools"],
        }],
        flags: |work| {
            let root = work.join("musl");
            let root = root.display();
            format!(
                "-Clinker=gcc -Clink-self-contained=no -Crelocation-model=static \
                 -Clink-arg=-specs={root}/specs -Lnative={root}/usr/lib/x86_64-linux-musl"
            )
        },
        prepare: prepare_musl,
        tested: &[
            ("sync-shim", &["--lib"]),
            ("queue-spmc", &["--lib"]),
            ("queue-global", &["--lib"]),
            ("timer-wheel", &["--lib"]),
            ("task-header", &["--lib"]),
            ("task-sync", &["--lib"]),
            ("coop-budget", &["--lib"]),
            ("net-driver", &["--lib", "--test=tcp", "--test=udp"]),
            ("process-cluster", &["--lib"]),
            // These ask the C library for what glibc and musl do differently.
            ("sched-monitor", &["--lib", "--test=stack"]),
            ("selvedge", &["--test=faults"]),
        ],
        skipped: &[(
            "captures a thread in musl's functions, which have no table to unwind by",
            &[
                "captures_in_a_storm_of_allocations_name_the_function",
                "read_interrupted_by_a_capture_begins_again",
            ],
        )],
        ..CHECKED
    },
    Platform {
        name: "macos",
        what: "macOS on Apple's and Intel's processors, checked",
        targets: &["aarch64-apple-darwin", "x86_64-apple-darwin"],
        ..CHECKED
    },
    Platform {
        name: "freebsd",
        what: "FreeBSD on x86-64, checked",
        targets: &["x86_64-unknown-freebsd"],
        ..CHECKED
    },
    Platform {
        name: "windows",
        what: "Windows on x86-64, checked, and parts tested under Wine",
        targets: &["x86_64-pc-windows-gnu"],
        packages: &[MINGW, WINE],
        flags: |work| {
            let gcc = work.join("mingw/usr/bin/x86_64-w64-mingw32-gcc-win32");
            format!("-Clinker={}", gcc.display())
        },
        runner: wine,
        prepare: prepare_wine,
        tested: &[
            ("sync-shim", &["--lib"]),
            ("timer-wheel", &["--lib"]),
            ("blocking-threads", &["--lib"]),
            ("net-driver", &["--lib", "--test=tcp", "--test=udp"]),
            ("blocking-fs", &["--lib", "--test=pool"]),
            (
                "selvedge-executor",
                &["--test=current_thread", "--test=driver", "--test=time"],
            ),
            (
                "selvedge",
                &[
                    "--test=fs",
                    "--test=homes",
                    "--test=macros",
                    "--test=outside",
                    "--test=sync",
                ],
            ),
            ("selvedge-hyper", &["--lib", "--test=http1"]),
        ],
        examples: true,
        without: &[("has nothing on Windows", &["child-process"])],
        ..CHECKED
    },
    Platform {
        name: "wasm",
        what: "WebAssembly with WASI and one thread, checked, and parts tested in an interpreter",
        targets: &["wasm32-wasip1"],
        packages: &[Packages {
            folder: "wasm",
            rust: &[],
            others: &["lld-22", "wasi-libc"],
        }],
        flags: |work| {
            let root = work.join("wasm/usr/lib");
            let (root, folder) = (root.display(), work.join("wasm"));
            format!(
                "-Clinker={root}/llvm-22/bin/wasm-ld -Clinker-flavor=wasm-ld \
                 -Clink-self-contained=no -Lnative={root}/wasm32-wasi \
                 -Clink-arg={root}/wasm32-wasi/crt1-command.o -Clink-arg={}/no_threads.o",
                folder.display()
            )
        },
        runner: |work| {
            let wasmi = work.join(format!("wasmi-{WASMI}/bin/wasmi"));
            vec![wasmi.display().to_string(), "run".into()]
        },
        prepare: prepare_wasm,
        tested: &[("selvedge", &["--test=one_thread"])],
        without: &[
            ("has no processes there", &["child-process"]),
            (
                "needs sockets",
                &["selvedge-hyper", "selvedge-top", "process-cluster"],
            ),
            ("runs on Linux", &["selvedge-sim"]),
        ],
        ..CHECKED
    },
    Platform {
        name: "no-std",
        what: "no operating system: Cortex-M4 and M7, RISC-V and WebAssembly, checked without std",
        targets: &[
            "thumbv7em-none-eabihf",
            "riscv32imac-unknown-none-elf",
            "wasm32-unknown-unknown",
        ],
        build: Build::NoStd,
        ..CHECKED
    },
];
