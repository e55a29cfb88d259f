# Fails unless PROGRAM returns 0 and its output has SAYS in it.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE code)
string(FIND "${output}" "${SAYS}" place)
if(NOT code EQUAL 0 OR place EQUAL -1)
  message(FATAL_ERROR "${PROGRAM} returned ${code}; expected '${SAYS}' in:\n${output}${errors}")
endif()
