// SPDX-License-Identifier: Apache-2.0
//! Streams of devices.
use crate::error::Result;
use tvm_ffi_sys::{DLDevice, TVMFFIEnvGetStream, TVMFFIEnvSetStream, TVMFFIStreamHandle};

/// The stream in use on this thread.
///
/// ```
/// use tvm_ffi::{current_stream, DLDevice, DLDeviceType};
/// assert!(current_stream(&DLDevice::new(DLDeviceType::kDLCPU, 0)).is_null());
/// ```
pub fn current_stream(device: &DLDevice) -> TVMFFIStreamHandle {
    // SAFETY: reads a table of this thread.
    unsafe { TVMFFIEnvGetStream(device.device_type as i32, device.device_id) }
}

/// Runs `f` with another stream in use; the old one is restored whatever `f` does.
///
/// ```
/// use tvm_ffi::*;
/// let cpu = DLDevice::new(DLDeviceType::kDLCPU, 0);
/// let stream = 8 as TVMFFIStreamHandle;
/// // SAFETY: nothing uses the stream of the CPU.
/// let seen = unsafe { with_stream(&cpu, stream, || Ok(current_stream(&cpu))) };
/// assert_eq!(seen.unwrap(), stream);
/// assert!(current_stream(&cpu).is_null());
/// ```
///
/// # Safety
/// `stream` is a stream of the device for as long as `f` runs.
pub unsafe fn with_stream<T>(
    device: &DLDevice,
    stream: TVMFFIStreamHandle,
    f: impl FnOnce() -> Result<T>,
) -> Result<T> {
    struct Restore {
        device: DLDevice,
        stream: TVMFFIStreamHandle,
        done: bool,
    }
    impl Restore {
        fn run(&mut self) -> Result<()> {
            self.done = true;
            let mut unused = std::ptr::null_mut();
            // SAFETY: the stream was in use before.
            let code = unsafe {
                TVMFFIEnvSetStream(
                    self.device.device_type as i32,
                    self.device.device_id,
                    self.stream,
                    &mut unused,
                )
            };
            crate::check_safe_call!(code)
        }
    }
    impl Drop for Restore {
        fn drop(&mut self) {
            if !self.done {
                let _ = self.run();
            }
        }
    }
    let mut old = std::ptr::null_mut();
    let code = TVMFFIEnvSetStream(device.device_type as i32, device.device_id, stream, &mut old);
    crate::check_safe_call!(code)?;
    let mut restore = Restore { device: *device, stream: old, done: false };
    let result = f();
    let restored = restore.run();
    let value = result?;
    restored?;
    Ok(value)
}
