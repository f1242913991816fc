# SPDX-License-Identifier: Apache-2.0
# Driver of an R context of the code interpreter: runs the cells that it reads, and says what came of them (python.py has
# how). Requests come through `channel`, which is open already: a line with the sizes of words, and the words, which are
# the number, the code, and NAME=value of each variable of this cell. Frames are written as R writes its output, past
# what the code diverted. All of this has an environment of its own, since cells run in the global one.

LINE_MAX <- 8388608
CELLS_MAX <- 10000
mark <- paste0("\x1e", commandArgs(TRUE)[2])
room <- 4096 - nchar(mark, "bytes") - 4
number <- "0"
count <- 0
plots <- NULL

# ---- what it says ----

escaped <- function(code) {
	if (code < 0x10000) return(sprintf("\\u%04x", code))
	sprintf("\\u%04x\\u%04x", 0xd800L + (code - 0x10000L) %/% 0x400L, 0xdc00L + (code - 0x10000L) %% 0x400L)
}

# JSON in ASCII alone.
quoted <- function(text) {
	text <- paste(enc2utf8(as.character(text)), collapse = "\n")
	if (!validUTF8(text)) text <- iconv(text, "UTF-8", "UTF-8", sub = "?")
	for (pair in list(c("\\", "\\\\"), c("\"", "\\\""), c("\n", "\\n"), c("\t", "\\t")))
		text <- gsub(pair[1], pair[2], text, fixed = TRUE)
	if (grepl("[^ -~]", text, perl = TRUE)) {
		codes <- utf8ToInt(text)
		odd <- codes < 0x20L | codes > 0x7eL
		letters <- intToUtf8(codes, multiple = TRUE)
		letters[odd] <- vapply(codes[odd], escaped, "")
		text <- paste(letters, collapse = "")
	}
	paste0("\"", text, "\"")
}

object <- function(parts) {
	paste0("{", paste0(vapply(names(parts), quoted, ""), ":", unlist(parts), collapse = ","), "}")
}

# parts: texts of JSON by name. The outputs are those of the process, where stdout() can be what the code diverted to.
say <- function(type, parts = list()) {
	bytes <- charToRaw(paste0(object(c(list(id = number, type = quoted(type)), parts)), "\n"))
	for (first in seq(1, length(bytes), room)) {
		piece <- bytes[first:min(first + room - 1, length(bytes))]
		frame <- paste0(mark, sprintf("%04x", length(piece)), rawToChar(piece))
		if (type == "end") cat(frame, file = getConnection(2))
		cat(frame, file = getConnection(1))
	}
}

# ---- what can be shown ----

base64 <- function(bytes) {
	alphabet <- charToRaw("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
	padding <- (3 - length(bytes) %% 3) %% 3
	three <- matrix(as.integer(c(bytes, raw(padding))), nrow = 3)
	word <- three[1, ] * 65536L + three[2, ] * 256L + three[3, ]
	four <- alphabet[rbind(word %/% 262144L, word %/% 4096L %% 64L, word %/% 64L %% 64L, word %% 64L) + 1L]
	if (padding) four[length(four) + 1 - seq_len(padding)] <- charToRaw("=")
	rawToChar(four)
}

scalars <- function(column) {
	if (is.logical(column)) shown <- ifelse(column, "true", "false")
	else if (is.numeric(column) && is.null(attr(column, "class")))
		shown <- ifelse(is.finite(column), format(column, digits = 15, trim = TRUE, scientific = NA), NA)
	else shown <- vapply(as.character(column), quoted, "", USE.NAMES = FALSE)
	ifelse(is.na(column) | is.na(shown), "null", shown)
}

html_of <- function(frame) {
	plain <- function(text) gsub("<", "&lt;", gsub("&", "&amp;", as.character(text), fixed = TRUE), fixed = TRUE)
	cells <- function(tag, texts) paste0("<", tag, ">", plain(texts), "</", tag, ">", collapse = "")
	rows <- vapply(seq_len(nrow(frame)), function(at) {
		own <- vapply(frame, function(column) format(column[at]), "")
		paste0("<tr>", cells("th", rownames(frame)[at]), cells("td", own), "</tr>")
	}, "")
	paste0("<table><thead><tr><th></th>", cells("th", names(frame)), "</tr></thead><tbody>",
	       paste(rows, collapse = "\n"), "</tbody></table>")
}

# Of a data frame: a table, its rows, and its columns.
table_formats <- function(frame) {
	columns <- lapply(frame, scalars)
	rows <- vapply(seq_len(nrow(frame)), function(at) object(lapply(columns, `[`, at)), "")
	list(html = quoted(html_of(frame)), json = paste0("[", paste(rows, collapse = ","), "]"),
	     data = object(lapply(columns, function(one) paste0("[", paste(one, collapse = ","), "]"))))
}

is_table <- function(value) {
	is.data.frame(value) && ncol(value) && nrow(value) * ncol(value) <= CELLS_MAX &&
		all(vapply(value, function(column) is.atomic(column) && is.null(dim(column)), TRUE))
}

show_value <- function(value, is_main) {
	text <- paste(utils::capture.output(if (isS4(value)) methods::show(value) else print(value)), collapse = "\n")
	# What is printed as a plot alone has no text.
	if (!nzchar(text)) return()
	if (nchar(text, "bytes") > LINE_MAX / 4) text <- substr(text, 1, LINE_MAX / 16)
	formats <- list(text = quoted(text))
	if (is_table(value)) formats <- c(formats, tryCatch(table_formats(value), error = function(e) list()))
	say_all(formats, is_main)
}

say_all <- function(formats, is_main) {
	suspendInterrupts(say("result", c(list(is_main_result = if (is_main) "true" else "false"), formats)))
}

# ---- plots ----

# The device that opens when the code draws and has none: files, one a page.
open_device <- function(...) {
	wanted <- getOption("jupyter.plot_mimetypes", "image/png")
	is_png <- capabilities("png") && "image/png" %in% wanted
	plots <<- list(place = tempfile("plots"), kind = if (is_png) "png" else "svg")
	dir.create(plots$place)
	file <- file.path(plots$place, paste0("%06d.", plots$kind))
	if (is_png) grDevices::png(file, width = 7, height = 7, units = "in", res = 96)
	else grDevices::svg(file, width = 7, height = 7, onefile = FALSE)
	plots$device <<- grDevices::dev.cur()
}

show_plots <- function(is_shown) {
	own <- plots
	plots <<- NULL
	if (is.null(own)) return()
	if (own$device %in% grDevices::dev.list()) grDevices::dev.off(own$device)
	for (file in if (is_shown) list.files(own$place, full.names = TRUE)) {
		bytes <- readBin(file, "raw", file.size(file))
		shown <- if (own$kind == "png") base64(bytes) else rawToChar(bytes)
		if (nchar(shown) < LINE_MAX / 2) say_all(structure(list(quoted(shown)), names = own$kind), FALSE)
	}
	unlink(own$place, recursive = TRUE)
}

# ---- cells ----

say_error <- function(name, value, calls) {
	lines <- vapply(calls, function(call) substr(deparse(call, nlines = 1)[1], 1, 200), "")
	lines <- if (length(lines)) paste0(seq_along(lines), ": ", lines)
	suspendInterrupts(say("error", list(name = quoted(name), value = quoted(value),
		traceback = quoted(c(paste0(name, ": ", value), lines)))))
}

evaluate <- function(code) {
	cells <- tryCatch(parse(text = code, keep.source = TRUE, encoding = "UTF-8"), error = function(e)
		stop(structure(class = c("ParseError", "error", "condition"), list(message = conditionMessage(e)))))
	for (at in seq_along(cells)) {
		shown <- withVisible(eval(cells[[at]], globalenv()))
		if (shown$visible) show_value(shown$value, at == length(cells))
	}
}

run <- function(code) {
	calls <- list()
	depth <- sys.nframe()
	# Of the calls, those of the code: between eval() of a cell and these functions.
	seen <- function(e) {
		all <- sys.calls()
		first <- which(vapply(all, function(call) identical(call[[1]], quote(withVisible)), TRUE))
		first <- first[first > depth]
		if (length(first) && first[1] + 2 < length(all) - 2)
			calls <<- utils::tail(all[(first[1] + 3):(length(all) - 2)], 32)
	}
	tryCatch({
		allowInterrupts(withCallingHandlers(evaluate(code), error = seen))
		show_plots(TRUE)
	}, error = function(e) {
		name <- class(e)[1]
		if (name == "simpleError") name <- "Error"
		show_plots(TRUE)
		say_error(name, conditionMessage(e), calls)
	}, interrupt = function(e) {
		show_plots(FALSE)
		say_error("Interrupt", "the execution was interrupted", list())
	})
}

read_bytes <- function(size) {
	bytes <- raw(0)
	while (length(bytes) < size) {
		piece <- readBin(channel, "raw", size - length(bytes))
		if (!length(piece)) quit("no")
		bytes <- c(bytes, piece)
	}
	bytes
}

read_request <- function() {
	sizes <- readLines(channel, 1)
	if (!length(sizes)) quit("no")
	vapply(as.integer(strsplit(sizes, " ")[[1]]), function(size) {
		word <- rawToChar(read_bytes(size))
		Encoding(word) <- "UTF-8"
		word
	}, "")
}

serve_one <- function() {
	request <- read_request()
	# An interrupt that came too late for the cell before.
	tryCatch(allowInterrupts(Sys.sleep(0.001)), interrupt = function(e) NULL)
	number <<- request[1]
	count <<- count + 1
	say("number_of_executions", list(execution_count = sprintf("%d", count)))
	words <- request[-(1:2)]
	names <- sub("=.*", "", words)
	before <- Sys.getenv(names, unset = NA, names = TRUE)
	if (length(words)) do.call(Sys.setenv, structure(as.list(sub("^[^=]*=", "", words)), names = names))
	run(request[2])
	Sys.unsetenv(names)
	kept <- before[!is.na(before)]
	if (length(kept)) do.call(Sys.setenv, as.list(kept))
	if (sink.number(type = "message") != 2) sink(type = "message")
	say("end")
}

# As that of base, which would close the channel as well, and wait for what writes into it.
close_others <- function() {
	while (sink.number()) sink()
	if (sink.number(type = "message") != 2) sink(type = "message")
	for (at in setdiff(getAllConnections(), c(0:2, as.integer(channel)))) close(getConnection(at))
	invisible()
}

unlockBinding("closeAllConnections", baseenv())
assign("closeAllConnections", close_others, baseenv())
lockBinding("closeAllConnections", baseenv())
options(device = open_device, warn = 1, width = 120)
suspendInterrupts(repeat serve_one())
