# Finds MLX in the Python environment that scripts/setup made (or wherever
# MLX_DIR points), and a run path that lets the binaries find libmlx there.

find_program(
    SHEAVE_PYTHON
    NAMES python3
    HINTS ${CMAKE_SOURCE_DIR}/.venv/bin
    NO_DEFAULT_PATH
)
if(NOT MLX_DIR AND SHEAVE_PYTHON)
    execute_process(
        COMMAND
            ${SHEAVE_PYTHON} -c
            "import importlib.util as u; print(list(u.find_spec('mlx').submodule_search_locations)[0])"
        OUTPUT_VARIABLE mlx_package
        OUTPUT_STRIP_TRAILING_WHITESPACE
        ERROR_QUIET
    )
    if(mlx_package)
        set(MLX_DIR
            ${mlx_package}/share/cmake/MLX
            CACHE PATH
            "Folder of MLXConfig.cmake"
        )
    endif()
endif()
find_package(MLX CONFIG)
if(NOT MLX_FOUND)
    message(
        FATAL_ERROR
        "MLX was not found. Run scripts/setup, or pass -DMLX_DIR=<mlx>/share/cmake/MLX."
    )
endif()
set_target_properties(mlx PROPERTIES SYSTEM ON)

# Installed binaries look for libmlx where it was found, and beside themselves.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
if(APPLE)
    set(CMAKE_INSTALL_RPATH "@loader_path/../lib")
else()
    set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
endif()
