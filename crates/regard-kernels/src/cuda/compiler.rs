//! NVRTC: from text to machine code, without a GPU.

use super::library;
use crate::error::Error;
use cudarc::nvrtc::{result, sys};
use std::ffi::{CStr, CString, c_char};

/// What NVRTC made of a text.
#[doc(hidden)]
#[derive(Debug)]
pub struct Compiled {
    /// Machine code for one architecture.
    pub cubin: Vec<u8>,
    /// Registers, memory and spills of each kernel.
    pub log: String,
}

/// The options that every kernel is compiled with. Nothing here may trade exactness for speed.
const OPTIONS: [&str; 3] =
    ["--std=c++17", "--ptxas-options=-v", "--device-as-default-execution-space"];

/// The options for an architecture, as they enter the name under which machine code is kept.
#[doc(hidden)]
pub fn options(architecture: &str) -> Vec<String> {
    let target = format!("--gpu-architecture={architecture}");
    std::iter::once(target).chain(OPTIONS.map(String::from)).collect()
}

/// NVRTC's version.
pub(super) fn version() -> Result<(i32, i32), Error> {
    library::nvrtc()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is open, and both numbers outlive the call.
    unsafe { sys::nvrtcVersion(&mut major, &mut minor) }
        .result()
        .map_err(|error| failed(&error))?;
    Ok((major, minor))
}

/// Compiles a text for an architecture such as `sm_90a`.
#[doc(hidden)]
pub fn compile_for(architecture: &str, text: &str) -> Result<Compiled, Error> {
    library::nvrtc()?;
    let text = CString::new(text).map_err(|_| Error::new("the text of a kernel holds a zero"))?;
    let program = Program::of(&text)?;
    // SAFETY: the program lives, and the options are plain text.
    let compiled = unsafe { result::compile_program(program.0, &options(architecture)) };
    // SAFETY: the program lives.
    let log = unsafe { result::get_program_log(program.0) }.map(readable).unwrap_or_default();
    if let Err(error) = compiled {
        let first = log.lines().find(|line| line.contains("error")).unwrap_or("no reason given");
        return Err(Error::device(format!(
            "NVRTC did not compile a kernel for {architecture} ({error}): {first}"
        )));
    }
    Ok(Compiled { cubin: program.cubin()?, log })
}

struct Program(sys::nvrtcProgram);

impl Program {
    fn of(text: &CStr) -> Result<Self, Error> {
        result::create_program(text, Some(c"regard.cu")).map(Self).map_err(|error| failed(&error))
    }

    fn cubin(&self) -> Result<Vec<u8>, Error> {
        let mut size = 0;
        // SAFETY: the program is compiled, and the buffer is as long as NVRTC says.
        unsafe {
            sys::nvrtcGetCUBINSize(self.0, &mut size).result().map_err(|error| failed(&error))?;
            let mut cubin = vec![0u8; size];
            sys::nvrtcGetCUBIN(self.0, cubin.as_mut_ptr().cast::<c_char>())
                .result()
                .map_err(|error| failed(&error))?;
            Ok(cubin)
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: nobody uses the program any more.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

fn failed(error: &result::NvrtcError) -> Error {
    Error::device(format!("NVRTC failed: {error}"))
}

fn readable(log: Vec<c_char>) -> String {
    let bytes: Vec<u8> = log.into_iter().map(|c| c as u8).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
