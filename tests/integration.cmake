# Tests of the built program. A test with exit status 77 is skipped.

# A developer's own settings change no test.
set(HEADROOM_WITHOUT_SETTINGS XDG_CONFIG_HOME=unset:)
foreach(name IN ITEMS CONFIG MACHINE THREADS FORMAT PRESETS MACHINES)
  list(APPEND HEADROOM_WITHOUT_SETTINGS HEADROOM_${name}=unset:)
endforeach()

# integration_test(NAME COMMAND…): a command that CTest runs.
function(integration_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77
    ENVIRONMENT_MODIFICATION "${HEADROOM_WITHOUT_SETTINGS}")
endfunction()

# Expected outputs of the commands: one file each in golden/cases.
set(HEADROOM_GOLDEN_CASES
  analyze_bert_base
  analyze_conventions
  analyze_formats
  analyze_kinds
  analyze_llama_decode
  analyze_t5
  analyze_train_recompute
  command_words
  compare_imports
  complexity
  complexity_studies
  diff
  errors
  explain_activations
  explain_bert_base
  explain_claim
  explain_crossovers
  explain_figures
  explain_generation
  explain_hybrids
  explain_kv
  explain_kv_policy
  explain_params
  explain_steps
  fit
  fit_devices
  fit_errors
  fit_kinds
  fit_inputs
  fit_split
  layers
  measure_options
  no_plan
  option_values
  plan
  plan_rules
  presets_show
  serve
  serve_errors
  serve_kinds
  serve_options
  sweep
  sweep_axes
  type_options
  unread_options)
set(golden_run bash ${CMAKE_CURRENT_LIST_DIR}/golden/run.sh $<TARGET_FILE:headroom>)
set(update_commands "")
foreach(case IN LISTS HEADROOM_GOLDEN_CASES)
  set(case_file ${CMAKE_CURRENT_LIST_DIR}/golden/cases/${case}.txt)
  integration_test(golden.${case} ${golden_run} ${case_file})
  list(APPEND update_commands COMMAND ${golden_run} ${case_file} --update)
endforeach()
integration_test(golden.no_orphans
  bash ${CMAKE_CURRENT_LIST_DIR}/golden/no_orphans.sh ${HEADROOM_GOLDEN_CASES})

integration_test(style.no_options_in_library
  bash ${CMAKE_CURRENT_LIST_DIR}/style/no_options_in_library.sh)

# CLI11 words the help; each command's examples must appear.
foreach(command IN ITEMS analyze explain diff measure compare complexity fit plan serve sweep train-time calibrate inspect machines system models presets
                         completion)
  integration_test(help.${command} $<TARGET_FILE:headroom> ${command} --help)
  set_tests_properties(help.${command} PROPERTIES
    PASS_REGULAR_EXPRESSION "Examples:[\r\n]+  (source <\\()?headroom ${command}")
endforeach()

# Prefers the system's Python, which has python3-jsonschema. Scripts that run the program hundreds of
# times run with the optimised one only: sanitizers see the same code in the tests of its libraries,
# in the golden cases and in the fuzzers of arguments and folders.
set(reports ${PROJECT_SOURCE_DIR}/reports)
find_program(HEADROOM_PYTHON python3 HINTS /usr/bin)
if(HEADROOM_PYTHON AND NOT HEADROOM_SANITIZE)
  # JSON reports against their schemas.
  integration_test(schema
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/schema/validate.py $<TARGET_FILE:headroom>
    ${reports})
  integration_test(csv_tables
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/schema/csv_tables.py $<TARGET_FILE:headroom>)
  integration_test(terminal
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/terminal/terminal.py $<TARGET_FILE:headroom>)
  foreach(shell bash zsh fish)  # skipped where it is not installed
    integration_test(completion.${shell}
      ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/completion/shells.py $<TARGET_FILE:headroom> ${shell})
  endforeach()
  integration_test(settings
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/settings/settings.py $<TARGET_FILE:headroom>)
  integration_test(page.files
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/page/pages.py $<TARGET_FILE:headroom>)
  integration_test(page.traces
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/page/traces.py $<TARGET_FILE:headroom>)
  integration_test(page.bundle
    bash ${CMAKE_CURRENT_LIST_DIR}/page/bundle.sh ${PROJECT_SOURCE_DIR}/src/page)
  integration_test(page.browser
    bash ${CMAKE_CURRENT_LIST_DIR}/page/browser.sh browser.mjs $<TARGET_FILE:headroom> ${PROJECT_SOURCE_DIR}/src/page)
  integration_test(page.explorer
    bash ${CMAKE_CURRENT_LIST_DIR}/page/explorer.sh $<TARGET_FILE:headroom> ${PROJECT_SOURCE_DIR}/build/explorer)
  integration_test(page.explorer_browser
    bash ${CMAKE_CURRENT_LIST_DIR}/page/browser.sh explorer_browser.mjs
    ${PROJECT_SOURCE_DIR}/build/explorer ${PROJECT_SOURCE_DIR}/src/page)
  integration_test(style.named_options
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/style/named_options.py $<TARGET_FILE:headroom>)
  integration_test(style.python_imports
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/style/python_imports.py ${CMAKE_CURRENT_LIST_DIR})
  integration_test(published
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/bench/published.py $<TARGET_FILE:headroom> --check)
  # A row limits the address space, and the shim has its own malloc: sanitizers allow neither.
  integration_test(faults
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/faults/faults.py $<TARGET_FILE:headroom>)
  integration_test(faults.kills
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/faults/kills.py $<TARGET_FILE:headroom>)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    add_library(headroom_fault_shim MODULE ${CMAKE_CURRENT_LIST_DIR}/faults/shim.cpp)
    headroom_settings(headroom_fault_shim)
    target_compile_options(headroom_fault_shim PRIVATE -fvisibility=default)  # its calls replace libc's
    target_link_libraries(headroom_fault_shim PRIVATE ${CMAKE_DL_LIBS})
    integration_test(faults.injection
      ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/faults/injection.py $<TARGET_FILE:headroom>
      $<TARGET_FILE:headroom_fault_shim>)
  endif()
  integration_test(models_fit
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/models_fit.py $<TARGET_FILE:headroom>)
  integration_test(style.letters
    ${HEADROOM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/style/letters.py $<TARGET_FILE:headroom>)
  # In a new build CTest knows no times: those of a minute or more start first, beside the others.
  set_tests_properties(published faults schema PROPERTIES COST 100)
endif()

if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_BUILD_TYPE STREQUAL "Release"
    AND NOT HEADROOM_SANITIZE)
  integration_test(style.hardened
    bash ${CMAKE_CURRENT_LIST_DIR}/style/hardened.sh $<TARGET_FILE:headroom>)
endif()
integration_test(multimodal bash ${CMAKE_CURRENT_LIST_DIR}/multimodal.sh $<TARGET_FILE:headroom>
  ${CMAKE_CURRENT_LIST_DIR}/data/towers/tiny/gemma3.config.json 97)
integration_test(multimodal.sound bash ${CMAKE_CURRENT_LIST_DIR}/multimodal.sh
  $<TARGET_FILE:headroom> ${CMAKE_CURRENT_LIST_DIR}/data/towers/tiny/voxtral.config.json 24 sound)
integration_test(strict bash ${CMAKE_CURRENT_LIST_DIR}/strict.sh $<TARGET_FILE:headroom>)
integration_test(odd_paths bash ${CMAKE_CURRENT_LIST_DIR}/odd_paths.sh $<TARGET_FILE:headroom>
  ${CMAKE_CURRENT_LIST_DIR}/data/golden/models/gpt2/config.json)
integration_test(measure_inputs bash ${CMAKE_CURRENT_LIST_DIR}/measure_inputs.sh $<TARGET_FILE:headroom>
  ${CMAKE_CURRENT_LIST_DIR}/data/golden/models)
integration_test(import_options bash ${CMAKE_CURRENT_LIST_DIR}/import_options.sh $<TARGET_FILE:headroom>
  ${CMAKE_CURRENT_LIST_DIR}/data/imports)

set(samples_run bash ${reports}/samples.sh $<TARGET_FILE:headroom>)
integration_test(samples ${samples_run} --check)

if(NOT HEADROOM_SANITIZE)
  # Another project that uses the installed library.
  integration_test(consumer
    bash ${CMAKE_CURRENT_LIST_DIR}/consumer/run.sh ${PROJECT_BINARY_DIR}
    ${CMAKE_CURRENT_LIST_DIR}/consumer)
  integration_test(settings.waiting
    bash ${CMAKE_CURRENT_LIST_DIR}/settings/waiting.sh $<TARGET_FILE:headroom>)
  # Sanitizers slow down a calibration tenfold.
  integration_test(settings.own_machine
    bash ${CMAKE_CURRENT_LIST_DIR}/settings/own_machine.sh $<TARGET_FILE:headroom>)
  integration_test(action bash ${CMAKE_CURRENT_LIST_DIR}/action/test.sh $<TARGET_FILE:headroom>)
endif()

if(TARGET headroom_shared)
  add_subdirectory(c_api)
endif()

# The Python package, on the library of this build.
if(HEADROOM_PYTHON AND TARGET headroom_shared AND NOT HEADROOM_SANITIZE)
  foreach(test headroom from_hf)
    integration_test(python.${test}
      ${HEADROOM_PYTHON} -W ignore ${CMAKE_CURRENT_LIST_DIR}/python/test_${test}.py)
    set_tests_properties(python.${test} PROPERTIES ENVIRONMENT
      "PYTHONPATH=${PROJECT_SOURCE_DIR}/src/python;PYTHONDONTWRITEBYTECODE=1;HEADROOM_LIBRARY=$<TARGET_FILE:headroom_shared>;HEADROOM_PROGRAM=$<TARGET_FILE:headroom>")
  endforeach()
endif()

# Measures this processor, where PyTorch is installed.
if(HEADROOM_PYTHON AND NOT HEADROOM_SANITIZE)
  integration_test(python.torch_calibrate
    ${HEADROOM_PYTHON} -W ignore ${CMAKE_CURRENT_LIST_DIR}/python/test_torch_calibrate.py
    $<TARGET_FILE:headroom>)
endif()

add_subdirectory(docs)

add_custom_target(update-goldens
  ${update_commands}
  COMMAND ${samples_run}
  ${DOCS_UPDATES}
  DEPENDS headroom
  COMMENT "Rewriting expected outputs, sample reports and console blocks"
  VERBATIM)
