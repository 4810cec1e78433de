// SPDX-License-Identifier: BSD-3-Clause
//! The tables of five tokens, two of them at offsets of their own, by what bindgen makes of the header:
//!
//!     bindgen fastpe.h --allowlist-function 'fastpe_.*' --allowlist-type 'fastpe_.*' -o bindings.rs
//!     FASTPE_BINDINGS=$PWD/bindings.rs rustc example.rs -l fastpe

#[allow(dead_code, non_camel_case_types, non_upper_case_globals)]
mod c {
    include!(env!("FASTPE_BINDINGS"));
}
use std::ffi::CStr;
use std::mem::zeroed;
use std::ptr::null;

const TOKENS: usize = 5;
const HEAD_DIM: usize = 64;

fn check(status: c::fastpe_status) {
    if status != c::fastpe_status_code_FASTPE_OK {
        panic!(
            "{}",
            unsafe { CStr::from_ptr(c::fastpe_error_message()) }.to_string_lossy()
        );
    }
}

fn view(data: &mut [f32], shape: &[i64]) -> c::fastpe_array {
    assert_eq!(data.len() as i64, shape.iter().product::<i64>());
    c::fastpe_array {
        data: data.as_mut_ptr().cast(),
        shape: shape.as_ptr(),
        strides_bytes: null(),
        ndim: shape.len() as i32,
        dtype: c::fastpe_dtype_FASTPE_FLOAT32,
    }
}

fn main() {
    // Zeros, as FASTPE_ZERO: what is 0 is not used.
    let mut options: c::fastpe_rotary_options = unsafe { zeroed() };
    options.rotary_dim = HEAD_DIM as i64;
    options.base = 500000.0;
    options.pairing = c::fastpe_pairing_FASTPE_PAIRING_HALVES;
    let mut rotary = std::ptr::null_mut();
    check(unsafe { c::fastpe_rotary_create(&options, &mut rotary) });

    let (past, batch) = ([1000i64, 3], [2i64]);
    let offsets = c::fastpe_const_array {
        data: past.as_ptr().cast(),
        shape: batch.as_ptr(),
        strides_bytes: null(),
        ndim: 1,
        dtype: c::fastpe_dtype_FASTPE_INT64,
    };
    let mut rows: c::fastpe_rows = unsafe { zeroed() };
    rows.offsets = &offsets;

    let shape = [2, TOKENS as i64, HEAD_DIM as i64 / 2];
    let (mut cos, mut sin) = (vec![0f32; TOKENS * HEAD_DIM], vec![0f32; TOKENS * HEAD_DIM]);
    let (cos_view, sin_view) = (view(&mut cos, &shape), view(&mut sin, &shape));
    check(unsafe {
        c::fastpe_tables(
            rotary,
            c::fastpe_table_form_FASTPE_TABLES_HALVES,
            &cos_view,
            &sin_view,
            &rows,
            0,
        )
    });
    println!("cos {:.7}, sin {:.7}", cos[0], sin[0]);
    assert_eq!(cos[0], 1000f64.cos() as f32);
    unsafe { c::fastpe_rotary_destroy(rotary) };
}
