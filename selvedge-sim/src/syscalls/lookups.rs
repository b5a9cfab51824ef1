//! The lookup of names: `getaddrinfo`.
//!
//! A host of the simulation has one address, and `localhost` is the own host. No other name is
//! known. A lookup takes some time.
use super::{Call, addresses, functions::next};
use libc::{addrinfo, c_char, c_int, c_void, sockaddr_in, sockaddr_in6, socklen_t};
use std::{
    cell::RefCell,
    ffi::CStr,
    hint::black_box,
    mem,
    net::{IpAddr, SocketAddr, SocketAddrV4},
    ptr,
    time::Duration,
};

/// How long a lookup takes.
const TIME: Duration = Duration::from_micros(300);

/// An answer: one address, and where it is.
#[repr(C)]
struct Answer {
    info: addrinfo,
    ipv4: sockaddr_in,
    ipv6: sockaddr_in6,
}

std::thread_local! {
    /// The answers that are not freed yet. A run has a thread of its own.
    static ANSWERS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn keep() {
    black_box(getaddrinfo as *const ());
    black_box(freeaddrinfo as *const ());
}

/// Looks a name up.
fn look_up(name: &str, port: u16) -> Option<Result<SocketAddr, c_int>> {
    Call::begin(|call| {
        let ip = match name.parse::<IpAddr>() {
            Ok(ip) => Some(ip),
            Err(_) => {
                call.world.wait_for(0, Some(TIME));
                call.net(|net, _, _| net.look_up(name))
            }
        };
        ip.map(|ip| SocketAddr::new(ip, port))
            .ok_or(libc::EAI_NONAME)
    })
}

/// Allocates the answer of a lookup.
fn allocate(address: SocketAddr, hints: addrinfo) -> *mut addrinfo {
    // SAFETY: all zeros are a value of this type.
    let zeroed: Answer = unsafe { mem::zeroed() };
    let answer = Box::leak(Box::new(zeroed));
    answer.info.ai_socktype = match hints.ai_socktype {
        0 => libc::SOCK_STREAM,
        kind => kind,
    };
    answer.info.ai_protocol = hints.ai_protocol;
    let (to, mut len, room) = match address {
        SocketAddr::V4(_) => {
            answer.info.ai_family = libc::AF_INET;
            let len = size_of::<sockaddr_in>();
            (
                ptr::from_mut(&mut answer.ipv4).cast(),
                len as socklen_t,
                len,
            )
        }
        SocketAddr::V6(_) => {
            answer.info.ai_family = libc::AF_INET6;
            let len = size_of::<sockaddr_in6>();
            (
                ptr::from_mut(&mut answer.ipv6).cast(),
                len as socklen_t,
                len,
            )
        }
    };
    // SAFETY: the answer has room for the address of this family.
    unsafe { addresses::write(address, to, &raw mut len) };
    answer.info.ai_addr = to;
    answer.info.ai_addrlen = room as socklen_t;
    let info = ptr::from_mut(answer).cast::<addrinfo>();
    ANSWERS.with_borrow_mut(|answers| answers.push(info.addr()));
    info
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    to: *mut *mut addrinfo,
) -> c_int {
    let text = |text: *const c_char| {
        // SAFETY: the caller's.
        let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
        text.map(|text| text.to_string_lossy())
    };
    let (name, port) = (text(node), text(service).and_then(|port| port.parse().ok()));
    let any = SocketAddrV4::new([127, 0, 0, 1].into(), 0).ip().to_string();
    let name = name.map_or(any, |name| name.into_owned());
    let Some(found) = look_up(&name, port.unwrap_or(0)) else {
        type Function = unsafe extern "C" fn(
            *const c_char,
            *const c_char,
            *const addrinfo,
            *mut *mut addrinfo,
        ) -> c_int;
        let function = next!(getaddrinfo, Function);
        // SAFETY: the caller's.
        return unsafe { function(node, service, hints, to) };
    };
    match found {
        Err(error) => error,
        Ok(address) => {
            // SAFETY: the caller's. All zeros are no hints.
            let hints = unsafe { hints.as_ref() }
                .copied()
                .unwrap_or(unsafe { mem::zeroed() });
            // SAFETY: the caller's.
            unsafe { to.write(allocate(address, hints)) };
            0
        }
    }
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn freeaddrinfo(info: *mut addrinfo) {
    let is_ours = ANSWERS.try_with(|answers| {
        let mut answers = answers.borrow_mut();
        let at = answers.iter().position(|answer| *answer == info.addr());
        at.map(|at| answers.swap_remove(at)).is_some()
    });
    if is_ours == Ok(true) {
        // SAFETY: `allocate` has leaked the box, and the list says that it was not freed.
        drop(unsafe { Box::from_raw(info.cast::<Answer>()) });
        return;
    }
    let function = next!(freeaddrinfo, unsafe extern "C" fn(*mut c_void));
    // SAFETY: the caller's.
    unsafe { function(info.cast()) };
}
