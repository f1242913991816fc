// SPDX-License-Identifier: Apache-2.0
// What Tomcat takes a target for, printed as "PORT NAME", and "ready" after the last; each answers with the path.
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.logging.LogManager;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

public class TomcatPaths {
	static void serve(String name, File base, String solidus, boolean backslash) throws Exception {
		Tomcat tomcat = new Tomcat();
		Connector connector = new Connector();
		tomcat.setBaseDir(base.getPath());
		connector.setPort(0);
		connector.setProperty("address", "127.0.0.1");
		connector.setProperty("maxKeepAliveRequests", "-1");
		connector.setProperty("relaxedPathChars", "\\|\"<>[]^`{}");
		connector.setProperty("minSpareThreads", "1");
		connector.setEncodedSolidusHandling(solidus);
		connector.setAllowBackslash(backslash);
		tomcat.setConnector(connector);
		Context context = tomcat.addContext("", base.getPath());
		Tomcat.addServlet(context, "tell", new HttpServlet() {
			@Override
			protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
				String path = request.getServletPath() + (request.getPathInfo() == null ? "" :
					request.getPathInfo());
				response.getOutputStream().write(path.getBytes(StandardCharsets.UTF_8));
			}
		});
		context.addServletMappingDecoded("/*", "tell");
		tomcat.start();
		System.out.println(connector.getLocalPort() + " tomcat: " + name);
	}

	public static void main(String[] arguments) throws Exception {
		LogManager.getLogManager().reset();
		File base = new File(arguments[0]);
		serve("reject", base, "reject", false);
		serve("decode", base, "decode", true);
		serve("passthrough", base, "passthrough", false);
		System.out.println("ready");
		while (System.in.read() >= 0)
			;
		System.exit(0);
	}
}
