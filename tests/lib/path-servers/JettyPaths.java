// SPDX-License-Identifier: Apache-2.0
// What Jetty takes a target for, printed as "PORT NAME", and "ready" after the last; each answers with the path.
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.AbstractHandler;

public class JettyPaths {
	static void serve(String name, Function<HttpServletRequest, String> answer) throws Exception {
		Server server = new Server();
		ServerConnector connector = new ServerConnector(server, 1, 1);
		connector.setHost("127.0.0.1");
		server.addConnector(connector);
		server.setHandler(new AbstractHandler() {
			@Override
			public void handle(String target, Request base, HttpServletRequest request,
					HttpServletResponse response) throws IOException {
				base.setHandled(true);
				response.getOutputStream().write(answer.apply(request).getBytes(StandardCharsets.UTF_8));
			}
		});
		server.start();
		System.out.println(connector.getLocalPort() + " jetty: " + name);
	}

	public static void main(String[] arguments) throws Exception {
		System.setProperty("org.eclipse.jetty.LEVEL", "OFF");
		serve("path", HttpServletRequest::getPathInfo);
		serve("URI", HttpServletRequest::getRequestURI);
		System.out.println("ready");
		while (System.in.read() >= 0)
			;
		System.exit(0);
	}
}
