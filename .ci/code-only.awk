# C source without comments, and with empty strings and character constants: every line stays on its line, prefixed with
# FILE:NUMBER: so that a check that greps the result reports where it was.
FNR == 1 { inside = 0 }
{
    line = $0
    out = ""
    while (line != "") {
        if (inside) {
            end = index(line, "*/")
            if (!end) break
            line = substr(line, end + 2)
            inside = 0
            out = out " "
        } else if (match(line, /\/\*|\/\/|"|\047/)) {
            out = out substr(line, 1, RSTART - 1)
            mark = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
            if (mark == "//") break
            if (mark == "/*") {
                inside = 1
                continue
            }
            out = out mark mark
            while (line != "" && substr(line, 1, 1) != mark)
                line = substr(line, substr(line, 1, 1) == "\\" ? 3 : 2)
            line = substr(line, 2)
        } else {
            out = out line
            break
        }
    }
    print FILENAME ":" FNR ":" out
}
