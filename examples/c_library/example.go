// SPDX-License-Identifier: BSD-3-Clause

// The tables of five tokens after the first thousand. Arrays of fastpe hold pointers, which Go's rules allow for memory of
// C's, as here, and for Go's own memory if a runtime.Pinner holds it: go run example.go
package main

// #cgo LDFLAGS: -lfastpe
// #include <fastpe/fastpe.h>
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"log"
	"math"
	"unsafe"
)

const tokens, headDim = 5, 64

func check(status C.fastpe_status) {
	if status != C.FASTPE_OK {
		log.Fatal(C.GoString(C.fastpe_error_message()))
	}
}

func view(shape *C.int64_t) C.fastpe_array {
	data := C.calloc(tokens*headDim/2, C.sizeof_float)
	return C.fastpe_array{data: data, shape: shape, ndim: 2, dtype: C.FASTPE_FLOAT32}
}

func main() {
	options := C.fastpe_rotary_options{rotary_dim: headDim, base: 500000, pairing: C.FASTPE_PAIRING_HALVES}
	var rotary *C.fastpe_rotary
	check(C.fastpe_rotary_create(&options, &rotary))
	defer C.fastpe_rotary_destroy(rotary)

	shape := (*C.int64_t)(C.calloc(2, C.sizeof_int64_t))
	copy(unsafe.Slice(shape, 2), []C.int64_t{tokens, headDim / 2})
	cos, sin := view(shape), view(shape)
	for _, each := range []unsafe.Pointer{unsafe.Pointer(shape), cos.data, sin.data} {
		defer C.free(each)
	}
	rows := C.fastpe_rows{offset: 1000}
	check(C.fastpe_tables(rotary, C.FASTPE_TABLES_HALVES, &cos, &sin, &rows, 0))

	first := float32(*(*C.float)(cos.data))
	fmt.Printf("cos %.7f, sin %.7f\n", first, float32(*(*C.float)(sin.data)))
	if first != float32(math.Cos(1000)) {
		log.Fatal("another value than that of Go")
	}
}
