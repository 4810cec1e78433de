# How code is compiled. The targets fastpe_flags and fastpe_hardening are for what links them; the lists kernel_flags and
# seldom_run_flags are for some of its files.
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)

# A target's options come after CXXFLAGS and LDFLAGS, so these win over flags that would change values or the
# processor's state; csrc/fastpe/arithmetic_checks.h refuses the rest.
add_library(fastpe_flags INTERFACE)
if(MSVC)
  # Older msvcp140.dll files lack the constexpr mutex constructor.
  target_compile_options(fastpe_flags INTERFACE /W4 /fp:precise /D_DISABLE_CONSTEXPR_MUTEX_CONSTRUCTOR)
  target_compile_options(fastpe_flags INTERFACE $<$<BOOL:${FASTPE_WERROR}>:/WX>)
else()
  target_compile_options(
    fastpe_flags
    INTERFACE -fno-fast-math
              -fno-unsafe-math-optimizations
              -fno-associative-math
              -fno-reciprocal-math
              -fno-finite-math-only
              -fsigned-zeros
              $<$<CXX_COMPILER_ID:GNU>:-fno-single-precision-constant>)
  # On the link line, fast-math adds start-up code that makes the whole process flush subnormals to zero. The last -O
  # counts, so -O3 takes the place of -Ofast.
  target_link_options(fastpe_flags INTERFACE -fno-fast-math -fno-unsafe-math-optimizations -O3)
  # Emscripten leaves exceptions out unless it is asked for them.
  target_compile_options(fastpe_flags INTERFACE $<$<PLATFORM_ID:Emscripten>:-fexceptions>)
  target_link_options(fastpe_flags INTERFACE $<$<PLATFORM_ID:Emscripten>:-fexceptions>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64|i[3-6]86|x86)$" AND NOT APPLE AND NOT EMSCRIPTEN)
    # x87 arithmetic keeps more digits than a double has. NumPy needs SSE2 too.
    target_compile_options(fastpe_flags INTERFACE -msse2 -mfpmath=sse)
    # GCC zeroes and copies structs with string instructions, after which loads wait until the stores before them have
    # left the processor. Small calls feel that.
    set(strategy vector_loop:512:noalign,libcall:-1:noalign)
    target_compile_options(
      fastpe_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-mmemset-strategy=${strategy}>
                             $<$<CXX_COMPILER_ID:GNU>:-mmemcpy-strategy=${strategy}>)
    check_cxx_compiler_flag(-mno-daz-ftz FASTPE_KNOWS_DAZ_FTZ)
    if(FASTPE_KNOWS_DAZ_FTZ)
      target_link_options(fastpe_flags INTERFACE -mno-daz-ftz)
    endif()
    if("${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS} ${CMAKE_MODULE_LINKER_FLAGS}" MATCHES "-mpc(32|64)")
      message(FATAL_ERROR "fastpe: ${CMAKE_MATCH_0} changes the precision of x87 arithmetic in the whole process; "
                          "remove it from CXXFLAGS and LDFLAGS")
    endif()
  endif()
  # GCC loads neighbouring members of a struct at once, right after it stored one after the other, and waits for the
  # stores.
  target_compile_options(fastpe_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fno-tree-slp-vectorize>)
  # Link-time optimisation could merge code across instruction sets, and contraction to FMA would make results depend on
  # them.
  target_compile_options(fastpe_flags INTERFACE -fno-lto -ffp-contract=off -Wall -Wextra -Wconversion -Wshadow)
  target_link_options(fastpe_flags INTERFACE -fno-lto)
  target_compile_options(fastpe_flags INTERFACE $<$<BOOL:${FASTPE_WERROR}>:-Werror>)
endif()
# All but the kernels is hardened as far as the compiler can do it. FORTIFY needs optimisation, and sanitizers do its
# work better. A stack protector would cost a small call a tenth of its instructions.
add_library(fastpe_hardening INTERFACE)
if(NOT WIN32)
  if(NOT CMAKE_CXX_FLAGS MATCHES "sanitize|_FORTIFY_SOURCE")
    target_compile_options(fastpe_hardening INTERFACE "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  endif()
  check_linker_flag(CXX -Wl,-z,relro,-z,now FASTPE_KNOWS_NOW)
  if(FASTPE_KNOWS_NOW)
    target_link_options(fastpe_hardening INTERFACE -Wl,-z,relro,-z,now)
  endif()
endif()
# The kernels are measured code, whatever the build type: at -O2 GCC leaves loops around vectors as they are. With
# sanitizers, -O3 would compile each of them for minutes.
if(MSVC)
  set(kernel_flags $<$<NOT:$<CONFIG:Debug>>:/O2>)
elseif(CMAKE_CXX_FLAGS MATCHES "sanitize")
  set(kernel_flags -U_FORTIFY_SOURCE)
else()
  # Kernels throw nothing and call nothing that does: nothing unwinds through them, and the tables for it take room.
  # Only the ends of their rows are left to vectorize: as fast without it, and smaller.
  set(kernel_flags -O3 -fno-tree-vectorize -U_FORTIFY_SOURCE -fno-exceptions -fno-asynchronous-unwind-tables
      -fno-unwind-tables)
endif()
# What runs once, at import or for a new encoder, is small rather than fast, since room in a wheel is scarce.
if(NOT MSVC)
  set(seldom_run_flags $<$<CONFIG:Release>:-Os>)
endif()
