# Language level, warnings, sanitizers and output places for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
# Invariants checked by SHEAVE_DCHECK stay on unless NDEBUG says otherwise, and
# line tables are all the debug information that a backtrace needs.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

option(SHEAVE_WERROR "Treat warnings as errors" OFF)
option(SHEAVE_FUZZ "Build the libFuzzer targets (clang only)" OFF)
set(SHEAVE_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined")

add_compile_options(
    -Wall
    -Wextra
    -Wshadow
    -Wnon-virtual-dtor
    -Woverloaded-virtual
    -Wno-missing-field-initializers # fields left out take their defaults
)
if(SHEAVE_WERROR)
    add_compile_options(-Werror)
endif()
if(SHEAVE_SANITIZE)
    add_compile_options(
        -fsanitize=${SHEAVE_SANITIZE}
        -fno-omit-frame-pointer
        -fno-sanitize-recover=undefined
    )
    add_link_options(-fsanitize=${SHEAVE_SANITIZE})
endif()
if(SHEAVE_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
