//! The buffer of a read: which bytes are filled, and which are initialised.
//!
//! # Rules
//!
//! 1. `filled <= initialized <= buf.len()`.
//! 2. The first `initialized` bytes of `buf` are initialised.
//! 3. Nobody makes an initialised byte uninitialised, also not one behind `initialized`: the buffer
//!    may belong to a `&mut [u8]`. Only unsafe methods lend the bytes as `MaybeUninit`, and their
//!    callers promise this.
use bytes::{BufMut, buf::UninitSlice};
use std::{fmt, mem::MaybeUninit};

/// A buffer that a read fills, and that need not be initialised before.
///
/// ```text
/// [              capacity               ]
/// [ filled |          unfilled          ]
/// [     initialized    | uninitialized  ]
/// ```
///
/// The `filled` bytes are what was read. An [`AsyncRead`](crate::AsyncRead) appends to them, by
/// [`put_slice`](Self::put_slice), or by [`initialize_unfilled`](Self::initialize_unfilled) and
/// then [`advance`](Self::advance). As the buffer knows which bytes are initialised, a second read
/// into it initialises none again.
///
/// ```
/// use std::mem::MaybeUninit;
/// use task_io::ReadBuf;
///
/// let mut memory = [MaybeUninit::uninit(); 8];
/// let mut buf = ReadBuf::uninit(&mut memory);
/// buf.put_slice(b"abc");
/// buf.initialize_unfilled_to(2).copy_from_slice(b"de");
/// buf.advance(1);
/// assert_eq!(buf.filled(), b"abcd");
/// assert_eq!(buf.initialized(), b"abcde");
/// assert_eq!((buf.capacity(), buf.remaining()), (8, 4));
///
/// buf.filled_mut()[0] = b'A';
/// buf.initialized_mut()[4] = b'E';
/// buf.set_filled(5);
/// assert_eq!(buf.filled(), b"AbcdE");
/// assert_eq!(buf.initialize_unfilled(), [0; 3]);
/// buf.clear();
/// assert_eq!(buf.initialized(), b"AbcdE\0\0\0");
/// ```
pub struct ReadBuf<'a> {
    buf: &'a mut [MaybeUninit<u8>],
    filled: usize,
    initialized: usize,
}

impl<'a> ReadBuf<'a> {
    /// Creates an empty buffer of initialised bytes.
    ///
    /// ```
    /// let mut bytes = [0; 4];
    /// let mut buf = task_io::ReadBuf::new(&mut bytes);
    /// buf.put_slice(b"ab");
    /// assert_eq!(bytes, *b"ab\0\0");
    /// ```
    #[inline]
    pub fn new(buf: &'a mut [u8]) -> Self {
        let initialized = buf.len();
        let buf: *mut [u8] = buf;
        // SAFETY: the pointer comes from a unique reference with the same lifetime, which nobody
        // uses meanwhile. A `MaybeUninit<u8>` has the layout of a `u8`. No byte becomes
        // uninitialised (rule 3).
        let buf = unsafe { &mut *(buf as *mut [MaybeUninit<u8>]) };
        Self {
            buf,
            filled: 0,
            initialized,
        }
    }

    /// Creates an empty buffer of which no byte is known to be initialised.
    #[inline]
    pub fn uninit(buf: &'a mut [MaybeUninit<u8>]) -> Self {
        Self {
            buf,
            filled: 0,
            initialized: 0,
        }
    }

    /// Returns how many bytes the buffer has in all.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.buf.len()
    }

    /// Returns the filled bytes.
    #[inline]
    pub fn filled(&self) -> &[u8] {
        &self.initialized()[..self.filled]
    }

    /// Returns the filled bytes, to change them.
    #[inline]
    pub fn filled_mut(&mut self) -> &mut [u8] {
        let filled = self.filled;
        &mut self.initialized_mut()[..filled]
    }

    /// Returns an empty buffer of the first `n` unfilled bytes, or of all if there are fewer.
    ///
    /// This buffer does not see what the other one is filled with. The caller says so, with
    /// [`assume_init`](Self::assume_init) and [`advance`](Self::advance), or with `advance` alone
    /// if the bytes were initialised before.
    ///
    /// ```
    /// let mut bytes = [0; 8];
    /// let mut buf = task_io::ReadBuf::new(&mut bytes);
    /// buf.put_slice(b"ab");
    /// let mut part = buf.take(3);
    /// part.put_slice(b"cde");
    /// assert_eq!(part.remaining(), 0);
    /// buf.advance(3);
    /// assert_eq!(buf.filled(), b"abcde");
    /// ```
    #[inline]
    pub fn take(&mut self, n: usize) -> ReadBuf<'_> {
        let n = n.min(self.remaining());
        let initialized = (self.initialized - self.filled).min(n);
        ReadBuf {
            buf: &mut self.buf[self.filled..][..n],
            filled: 0,
            initialized,
        }
    }

    /// Returns the initialised bytes, of which the filled ones are the first.
    #[inline]
    pub fn initialized(&self) -> &[u8] {
        let bytes: *const [MaybeUninit<u8>] = &self.buf[..self.initialized];
        // SAFETY: the pointer comes from a reference with the same lifetime. The bytes are
        // initialised (rule 2), and a `u8` has the layout of a `MaybeUninit<u8>`.
        unsafe { &*(bytes as *const [u8]) }
    }

    /// Returns the initialised bytes, to change them.
    #[inline]
    pub fn initialized_mut(&mut self) -> &mut [u8] {
        let bytes: *mut [MaybeUninit<u8>] = &mut self.buf[..self.initialized];
        // SAFETY: the pointer comes from a unique reference with the same lifetime. The bytes are
        // initialised (rule 2), and a `u8` has the layout of a `MaybeUninit<u8>`.
        unsafe { &mut *(bytes as *mut [u8]) }
    }

    /// Returns the whole buffer.
    ///
    /// # Safety
    ///
    /// The caller makes no byte uninitialised, also none that is not known to be initialised.
    ///
    /// ```
    /// let mut bytes = [0; 8];
    /// let mut buf = task_io::ReadBuf::new(&mut bytes);
    /// buf.clear();
    /// // SAFETY: the byte that is written is initialised.
    /// let inner = unsafe { buf.inner_mut() };
    /// inner[0].write(7);
    /// assert_eq!(buf.initialized()[0], 7);
    /// ```
    #[inline]
    pub unsafe fn inner_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        self.buf
    }

    /// Returns the unfilled bytes, initialised or not.
    ///
    /// # Safety
    ///
    /// The caller makes no byte uninitialised, also none that is not known to be initialised.
    ///
    /// ```
    /// use std::mem::MaybeUninit;
    ///
    /// let mut memory = [MaybeUninit::uninit(); 8];
    /// let mut buf = task_io::ReadBuf::uninit(&mut memory);
    /// // SAFETY: the byte that is written is initialised.
    /// let unfilled = unsafe { buf.unfilled_mut() };
    /// unfilled[0].write(7);
    /// // SAFETY: the first byte was written.
    /// unsafe { buf.assume_init(1) };
    /// buf.advance(1);
    /// assert_eq!(buf.filled(), [7]);
    /// ```
    #[inline]
    pub unsafe fn unfilled_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.buf[self.filled..]
    }

    /// Returns the unfilled bytes, of which those become 0 that were not initialised.
    #[inline]
    pub fn initialize_unfilled(&mut self) -> &mut [u8] {
        self.initialize_unfilled_to(self.remaining())
    }

    /// Returns the first `n` unfilled bytes, of which those become 0 that were not initialised.
    ///
    /// # Panics
    ///
    /// If `n` is greater than [`remaining`](Self::remaining).
    #[inline]
    #[track_caller]
    pub fn initialize_unfilled_to(&mut self, n: usize) -> &mut [u8] {
        assert!(n <= self.remaining(), "n exceeds the unfilled bytes");
        let end = self.filled + n;
        if self.initialized < end {
            self.buf[self.initialized..end].fill(MaybeUninit::new(0));
            self.initialized = end;
        }
        let filled = self.filled;
        &mut self.initialized_mut()[filled..end]
    }

    /// Returns how many bytes are unfilled.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.capacity() - self.filled
    }

    /// Makes the filled bytes unfilled. They stay initialised, and keep their values.
    #[inline]
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Makes the first `n` unfilled bytes filled.
    ///
    /// # Panics
    ///
    /// If they are not all initialised.
    #[inline]
    #[track_caller]
    pub fn advance(&mut self, n: usize) {
        let filled = self.filled.checked_add(n);
        self.set_filled(filled.expect("filled bytes overflow"));
    }

    /// Makes the first `n` bytes of the buffer filled, and all others unfilled.
    ///
    /// # Panics
    ///
    /// If they are not all initialised.
    #[inline]
    #[track_caller]
    pub fn set_filled(&mut self, n: usize) {
        assert!(n <= self.initialized, "filled bytes must be initialised");
        self.filled = n;
    }

    /// Notes that the first `n` unfilled bytes are initialised.
    ///
    /// # Panics
    ///
    /// If `n` is greater than [`remaining`](Self::remaining).
    ///
    /// # Safety
    ///
    /// They are.
    ///
    /// ```
    /// let mut memory = [std::mem::MaybeUninit::new(7); 4];
    /// let mut buf = task_io::ReadBuf::uninit(&mut memory);
    /// // SAFETY: the memory was initialised above.
    /// unsafe { buf.assume_init(3) };
    /// assert_eq!(buf.initialized(), [7; 3]);
    /// ```
    #[inline]
    #[track_caller]
    pub unsafe fn assume_init(&mut self, n: usize) {
        assert!(n <= self.remaining(), "n exceeds the unfilled bytes");
        self.initialized = self.initialized.max(self.filled + n);
    }

    /// Appends `bytes` to the filled bytes.
    ///
    /// # Panics
    ///
    /// If there are more than [`remaining`](Self::remaining).
    #[inline]
    #[track_caller]
    pub fn put_slice(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.remaining(), "bytes exceed the buffer");
        let end = self.filled + bytes.len();
        let from: *const [u8] = bytes;
        // SAFETY: the pointer comes from a reference that lives on. A `u8` is a valid
        // `MaybeUninit<u8>`.
        let from = unsafe { &*(from as *const [MaybeUninit<u8>]) };
        self.buf[self.filled..end].copy_from_slice(from);
        self.initialized = self.initialized.max(end);
        self.filled = end;
    }
}

// SAFETY: `chunk_mut` returns the unfilled bytes, which are `remaining_mut` many, always the same
// ones until `advance_mut` moves past them.
unsafe impl BufMut for ReadBuf<'_> {
    #[inline]
    fn remaining_mut(&self) -> usize {
        self.remaining()
    }

    // SAFETY: the caller has initialised the bytes that it advances over.
    #[inline]
    unsafe fn advance_mut(&mut self, cnt: usize) {
        // SAFETY: the caller promises it.
        unsafe { self.assume_init(cnt) };
        self.advance(cnt);
    }

    #[inline]
    fn chunk_mut(&mut self) -> &mut UninitSlice {
        let unfilled = &mut self.buf[self.filled..];
        let (start, len) = (unfilled.as_mut_ptr().cast::<u8>(), unfilled.len());
        // SAFETY: the memory is borrowed as long as the slice is. Code that holds an `UninitSlice`
        // makes no byte of it uninitialised.
        unsafe { UninitSlice::from_raw_parts_mut(start, len) }
    }
}

impl fmt::Debug for ReadBuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBuf")
            .field("filled", &self.filled)
            .field("initialized", &self.initialized)
            .field("capacity", &self.capacity())
            .finish()
    }
}
