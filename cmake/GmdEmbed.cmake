# gmd_embed(FILE SYMBOL): makes the text of FILE the C string SYMBOL, in FILE's name with .h at its end
# in the build folder. (A literal could have no more than 4,095 characters.)
function(gmd_embed file symbol)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  file(READ ${CMAKE_CURRENT_SOURCE_DIR}/${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${file}.h
    CONTENT "static const char ${symbol}[] = {@bytes@0};\n" @ONLY)
endfunction()
