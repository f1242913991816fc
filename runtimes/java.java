// SPDX-License-Identifier: Apache-2.0
// Driver of a Java context of the code interpreter: runs the cells that it reads by jshell in its own process, and says
// what came of them (python.py has how). Requests come by descriptor 3: a line with the sizes of words, and the words,
// which are the number, the code, and NAME=value of each variable of this cell. Its lines stand in frames in 4 and 5,
// which are standard output and error.
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;

final class Driver {
	static final int LINE_MAX = 8 << 20, FRAME_MAX = 4096, FRAMES_SHOWN = 32;
	static final String[] IMPORTS = {"java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.time.*",
		"java.util.*", "java.util.concurrent.*", "java.util.function.*", "java.util.regex.*", "java.util.stream.*"};
	final byte[] mark;
	final DataInputStream input;
	final FileOutputStream output, error;
	final Map<String, String> environment;
	final JShell shell;
	volatile boolean isRunning, isInterrupted;
	String number = "0";
	int count;

	Driver(String mark) throws ReflectiveOperationException {
		this.mark = ("\u001e" + mark).getBytes(StandardCharsets.US_ASCII);
		input = new DataInputStream(new FileInputStream(descriptor(3)));
		output = new FileOutputStream(descriptor(4));
		error = new FileOutputStream(descriptor(5));
		environment = changeable(System.getenv());
		shell = JShell.builder().executionEngine("local").build();
		for (String name : IMPORTS)
			shell.eval("import " + name + ";");
		String path = System.getenv("CLASSPATH");
		for (String one : path == null ? new String[0] : path.split(":"))
			shell.addToClasspath(one.isEmpty() ? "." : one);
	}

	/** Of a number that this process has from its start, which Java has no call for. */
	static FileDescriptor descriptor(int number) throws ReflectiveOperationException {
		FileDescriptor made = new FileDescriptor();
		var field = FileDescriptor.class.getDeclaredField("fd");
		field.setAccessible(true);
		field.setInt(made, number);
		return made;
	}

	/** The environment of this process and of those that it starts, which Java lets nobody change. */
	@SuppressWarnings("unchecked")
	static Map<String, String> changeable(Map<String, String> fixed) throws ReflectiveOperationException {
		var field = fixed.getClass().getDeclaredField("m");
		field.setAccessible(true);
		return (Map<String, String>)field.get(fixed);
	}

	// ---- what it says ----

	/** A pipe takes a frame as a whole, or not at all where it is full and does not wait. */
	void writeFrame(FileOutputStream to, byte[] line, int at, int size) throws IOException {
		byte[] frame = new byte[mark.length + 4 + size];
		byte[] length = String.format("%04x", size).getBytes(StandardCharsets.US_ASCII);
		System.arraycopy(mark, 0, frame, 0, mark.length);
		System.arraycopy(length, 0, frame, mark.length, 4);
		System.arraycopy(line, at, frame, mark.length + 4, size);
		for (;;) {
			try {
				to.write(frame);
				return;
			} catch (IOException failure) {
				String why = String.valueOf(failure.getMessage());
				if (!why.contains("temporarily unavailable"))
					Runtime.getRuntime().halt(1);
				Thread.yield();
			}
		}
	}

	static String quoted(String text) {
		StringBuilder out = new StringBuilder("\"");
		for (int at = 0; at < text.length(); at++) {
			char one = text.charAt(at);
			boolean isHigh = Character.isHighSurrogate(one);
			boolean isPair = isHigh && at + 1 < text.length() && Character.isLowSurrogate(text.charAt(at + 1));
			if (isPair)
				out.append(String.format("\\u%04x\\u%04x", (int)one, (int)text.charAt(++at)));
			else if (Character.isSurrogate(one) || one == 0)
				out.append("\\ufffd");
			else if (one == '"' || one == '\\')
				out.append('\\').append(one);
			else if (one < ' ' || one > '~')
				out.append(String.format("\\u%04x", (int)one));
			else
				out.append(one);
		}
		return out.append('"').toString();
	}

	/** parts: names and texts of JSON by turns. */
	void say(String type, String... parts) throws IOException {
		StringBuilder text = new StringBuilder("{\"id\":" + number + ",\"type\":\"" + type + '"');
		for (int at = 0; at < parts.length; at += 2)
			text.append(",\"").append(parts[at]).append("\":").append(parts[at + 1]);
		byte[] line = text.append("}\n").toString().getBytes(StandardCharsets.US_ASCII);
		int room = FRAME_MAX - mark.length - 4;
		System.out.flush();
		System.err.flush();
		for (int at = 0; at < line.length; at += room) {
			int size = Math.min(room, line.length - at);
			if (type.equals("end"))
				writeFrame(error, line, at, size);
			writeFrame(output, line, at, size);
		}
	}

	void sayError(String name, String value, String trace) throws IOException {
		say("error", "name", quoted(name), "value", quoted(value == null ? "" : value), "traceback", quoted(trace));
	}

	void sayThrown(EvalException thrown) throws IOException {
		StringBuilder trace = new StringBuilder(thrown.getExceptionClassName());
		if (thrown.getMessage() != null)
			trace.append(": ").append(thrown.getMessage());
		StackTraceElement[] frames = thrown.getStackTrace();
		for (int at = 0; at < frames.length && at < FRAMES_SHOWN && !frames[at].getMethodName().equals("do_it$"); at++)
			trace.append("\n\tat ").append(frames[at]);
		sayError(thrown.getExceptionClassName(), thrown.getMessage(), trace.toString());
	}

	void sayRejected(Snippet snippet) throws IOException {
		List<String> lines = new ArrayList<>();
		shell.diagnostics(snippet).forEach((one) -> lines.add(one.getMessage(Locale.ROOT)));
		String value = lines.isEmpty() ? "the code cannot be compiled" : lines.get(0);
		sayError("CompilationError", value, String.join("\n", lines) + "\n" + snippet.source().stripTrailing());
	}

	// ---- cells ----

	/** What is shown: values of expressions, and not of declarations. */
	static boolean isExpression(Snippet snippet) {
		return snippet.kind() == Snippet.Kind.EXPRESSION ||
			snippet.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
	}

	/** False: the cell is over. */
	boolean take(SnippetEvent event, boolean isLast) throws IOException {
		if (event.causeSnippet() != null)
			return true;
		if (isInterrupted) {
			sayError("Interrupted", "the execution was interrupted", "");
			return false;
		}
		if (event.status() == Snippet.Status.REJECTED) {
			sayRejected(event.snippet());
			return false;
		}
		if (event.exception() instanceof EvalException thrown) {
			sayThrown(thrown);
			return false;
		}
		if (event.exception() != null) {
			sayError(event.exception().getClass().getSimpleName(), event.exception().getMessage(),
				event.snippet().source());
			return false;
		}
		String value = event.value();
		if (isLast && isExpression(event.snippet()) && value != null && !value.isEmpty())
			say("result", "is_main_result", "true", "text",
				quoted(value.length() > LINE_MAX / 8 ? value.substring(0, LINE_MAX / 16) : value));
		return true;
	}

	void run(String code) throws IOException {
		while (!code.isBlank()) {
			SourceCodeAnalysis.CompletionInfo found = shell.sourceCodeAnalysis().analyzeCompletion(code);
			String source = found.source() == null ? code : found.source();
			String rest = found.source() == null ? "" : found.remaining();
			for (SnippetEvent event : shell.eval(source))
				if (!take(event, rest.isBlank()))
					return;
			code = rest;
		}
	}

	/** Again and again: what is being compiled cannot be stopped, and runs afterwards. */
	void interrupt() {
		isInterrupted = isRunning;
		try {
			while (isRunning && isInterrupted) {
				shell.stop();
				Thread.sleep(20);
			}
		} catch (InterruptedException end) {
			Thread.currentThread().interrupt();
		}
	}

	// ---- requests ----

	String[] read() throws IOException {
		StringBuilder sizes = new StringBuilder();
		for (int one; (one = input.readUnsignedByte()) != '\n';)
			sizes.append((char)one);
		String[] words = sizes.toString().split(" ");
		for (int at = 0; at < words.length; at++)
			words[at] = new String(input.readNBytes(Integer.parseInt(words[at])), StandardCharsets.UTF_8);
		return words;
	}

	void serve() throws IOException {
		for (;;) {
			String[] request = read();
			Map<String, String> before = Map.copyOf(environment);
			List<String> names = new ArrayList<>();
			number = request[0];
			isInterrupted = false;
			say("number_of_executions", "execution_count", String.valueOf(++count));
			for (int at = 2; at < request.length; at++) {
				int end = request[at].indexOf('=');
				names.add(request[at].substring(0, end));
				environment.put(names.get(at - 2), request[at].substring(end + 1));
			}
			isRunning = true;
			run(request[1]);
			isRunning = false;
			for (String name : names) {
				if (before.containsKey(name))
					environment.put(name, before.get(name));
				else
					environment.remove(name);
			}
			say("end");
		}
	}

	/** words: the mark, and the directory of this text. */
	public static void main(String[] words) throws Exception {
		Files.deleteIfExists(Path.of(words[1], "Driver.java"));
		Files.deleteIfExists(Path.of(words[1]));
		Driver driver = new Driver(words[0]);
		sun.misc.Signal.handle(new sun.misc.Signal("INT"), (signal) -> driver.interrupt());
		try {
			driver.serve();
		} catch (EOFException end) {
			// Nobody asks any more.
		}
		Runtime.getRuntime().halt(0);
	}
}
