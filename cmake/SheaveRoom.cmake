# One room = one library target; one test executable beside it.

# sheave_room(NAME <room> SOURCES <files> [HEADERS <files>] [DEPS <rooms>]
#             [LIBS <targets>] [OBJECT])
# Makes the library sheave_<room> (alias sheave::<room>). DEPS are other rooms,
# LIBS third-party targets. OBJECT is for rooms whose files register themselves:
# through a static library the linker would drop them.
function(sheave_room)
    cmake_parse_arguments(
        ROOM
        "OBJECT"
        "NAME"
        "SOURCES;HEADERS;DEPS;LIBS"
        ${ARGN}
    )
    set(target sheave_${ROOM_NAME})
    if(ROOM_OBJECT)
        add_library(${target} OBJECT ${ROOM_SOURCES})
    else()
        add_library(${target} STATIC ${ROOM_SOURCES})
    endif()
    add_library(sheave::${ROOM_NAME} ALIAS ${target})
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    if(ROOM_HEADERS)
        target_sources(
            ${target}
            PUBLIC
                FILE_SET HEADERS
                    BASE_DIRS ${CMAKE_SOURCE_DIR}/src
                    FILES ${ROOM_HEADERS}
        )
        set_target_properties(
            ${target}
            PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON
        )
    endif()
    list(TRANSFORM ROOM_DEPS PREPEND sheave::)
    target_link_libraries(${target} PUBLIC ${ROOM_DEPS} ${ROOM_LIBS})
endfunction()

# sheave_test(NAME <room>_test SOURCES <files> [DEPS <rooms>] [LIBS <targets>]
#             [LABEL unit|model|slow] [ENVIRONMENT <VAR=value>...])
# Makes a GoogleTest executable and registers each of its tests with ctest.
function(sheave_test)
    cmake_parse_arguments(
        TEST
        ""
        "NAME;LABEL"
        "SOURCES;DEPS;LIBS;ENVIRONMENT"
        ${ARGN}
    )
    if(NOT TEST_LABEL)
        set(TEST_LABEL unit)
    endif()
    add_executable(${TEST_NAME} ${TEST_SOURCES})
    list(TRANSFORM TEST_DEPS PREPEND sheave::)
    target_link_libraries(
        ${TEST_NAME}
        PRIVATE ${TEST_DEPS} ${TEST_LIBS} GTest::gtest_main
    )
    target_compile_definitions(
        ${TEST_NAME}
        PRIVATE SHEAVE_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    )
    gtest_discover_tests(
        ${TEST_NAME}
        DISCOVERY_TIMEOUT 60
        PROPERTIES
            LABELS ${TEST_LABEL}
            TIMEOUT 900
            PROCESSORS ${processors}
            ENVIRONMENT "${TEST_ENVIRONMENT}"
    )
endfunction()

find_package(GTest REQUIRED)
include(GoogleTest)

# sheave_bench(NAME <room>_bench SOURCES <files> [DEPS <rooms>])
# Makes a Google Benchmark executable, where that library is installed.
find_package(benchmark QUIET)
function(sheave_bench)
    cmake_parse_arguments(BENCH "" "NAME" "SOURCES;DEPS" ${ARGN})
    if(NOT benchmark_FOUND)
        return()
    endif()
    add_executable(${BENCH_NAME} ${BENCH_SOURCES})
    list(TRANSFORM BENCH_DEPS PREPEND sheave::)
    target_link_libraries(
        ${BENCH_NAME}
        PRIVATE ${BENCH_DEPS} benchmark::benchmark_main GTest::gtest
    )
endfunction()
