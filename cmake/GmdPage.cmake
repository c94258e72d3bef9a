# gmd_embed_page(FOLDER HEADER SYMBOL): joins the modules, the style sheet and the template in FOLDER
# into one HTML text and makes it the C string SYMBOL in HEADER, which is written when the build needs
# it. FOLDER/modules.txt names the modules in the order in which they are joined, one on each line.
#
# This file is also the script that joins: cmake -DFOLDER=... -DOUTPUT=... -DSYMBOL=... -P GmdPage.cmake
cmake_minimum_required(VERSION 3.25)

function(gmd_embed_page folder header symbol)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/modules.txt)
  file(STRINGS ${folder}/modules.txt modules)
  list(TRANSFORM modules PREPEND ${folder}/)
  add_custom_command(OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUTPUT=${header} -DSYMBOL=${symbol}
            -P ${PROJECT_SOURCE_DIR}/cmake/GmdPage.cmake
    DEPENDS ${modules} ${folder}/modules.txt ${folder}/style.css ${folder}/template.html
            ${PROJECT_SOURCE_DIR}/cmake/GmdPage.cmake
    COMMENT "Joining the page" VERBATIM)
endfunction()

# The base64 of a SHA-256 that is given in hexadecimal digits, as a content security policy has it.
function(base64_of_sha256 hex result)
  set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(text "")
  foreach(first RANGE 0 60 6) # 3 bytes each; the last 2 bytes are filled up with zeros
    string(SUBSTRING "${hex}00" ${first} 6 digits)
    foreach(shift 18 12 6 0)
      math(EXPR index "(0x${digits} >> ${shift}) & 63")
      string(SUBSTRING ${alphabet} ${index} 1 letter)
      string(APPEND text ${letter})
    endforeach()
  endforeach()
  string(REGEX REPLACE "A$" "=" text ${text})
  set(${result} ${text} PARENT_SCOPE)
endfunction()

# Modules become one function: what they import from each other is in its scope. So no two may declare
# the same name, and only declarations at the beginning of a line can be exported.
function(join_modules folder result)
  file(STRINGS ${folder}/modules.txt modules)
  set(joined "\n\"use strict\";\n(() => {\n")
  set(declared "")
  foreach(module ${modules})
    file(READ ${folder}/${module} text)
    set(text "\n${text}")
    string(REGEX REPLACE "\nimport[ {][^;]*;" "\n" text "${text}")
    string(REGEX REPLACE "\nexport (async |function|class|const|let)" "\n\\1" text "${text}")
    if("${text}" MATCHES "\n((import|export)[^\n]*)")
      message(FATAL_ERROR "${folder}/${module}: the join knows no '${CMAKE_MATCH_1}'")
    endif()
    string(REGEX MATCHALL "\n(async )?(function\\*?|class|const|let) [A-Za-z0-9_$]+" names "${text}")
    foreach(name ${names})
      string(REGEX REPLACE "^.* " "" name "${name}")
      if(name IN_LIST declared)
        message(FATAL_ERROR "${folder}/${module}: '${name}' is declared by another module, too")
      endif()
      list(APPEND declared ${name})
    endforeach()
    string(APPEND joined "// ${module}${text}")
  endforeach()
  set(${result} "${joined}})();\n" PARENT_SCOPE)
endfunction()

# Puts `text` in the place of `marker`, which must be there once.
function(replace_marker name marker text)
  string(FIND "${${name}}" "${marker}" first)
  string(FIND "${${name}}" "${marker}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "the page: '${marker}' must be in it exactly once")
  endif()
  string(REPLACE "${marker}" "${text}" replaced "${${name}}")
  set(${name} "${replaced}" PARENT_SCOPE)
endfunction()

# An element whose text the policy allows by its hash; nothing in the text may end the element.
function(hashed_element tag text element hash)
  if("${text}" MATCHES "</[Ss]|<!--|\r")
    message(FATAL_ERROR "the page: its <${tag}> may have neither '</s', '<!--' nor a carriage return")
  endif()
  string(SHA256 hex "${text}")
  base64_of_sha256(${hex} base64)
  set(${element} "<${tag}>${text}</${tag}>" PARENT_SCOPE)
  set(${hash} "'sha256-${base64}'" PARENT_SCOPE)
endfunction()

function(join_page folder result)
  file(READ ${folder}/template.html page)
  file(READ ${folder}/style.css style)
  join_modules(${folder} script)
  hashed_element(style "${style}" style_element style_hash)
  hashed_element(script "${script}" script_element script_hash)
  string(CONCAT policy "default-src 'none'; script-src ${script_hash}; style-src ${style_hash}; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'")
  replace_marker(page "<!-- gmd:csp -->"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"${policy}\">")
  replace_marker(page "<!-- gmd:style -->" "${style_element}")
  replace_marker(page "<!-- gmd:script -->" "${script_element}")
  foreach(marker title data) # these stay for the program
    replace_marker(page "<!-- gmd:${marker} -->" "<!-- gmd:${marker} -->")
  endforeach()
  set(${result} "${page}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  join_page(${FOLDER} page)
  file(WRITE ${OUTPUT}.html "${page}")
  file(READ ${OUTPUT}.html hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(WRITE ${OUTPUT} "static const unsigned char ${SYMBOL}[] = {${bytes}0};\n")
endif()
