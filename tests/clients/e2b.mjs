// SPDX-License-Identifier: Apache-2.0
// What a program that uses the npm package e2b does, call by call: one JSON line a call, {"call", "ok", "detail"}.
// Arguments: the package's directory. Environment: the three variables that `atoll serve` prints.
import { createRequire } from 'node:module'
import http from 'node:http'
import https from 'node:https'
import path from 'node:path'

const { Sandbox, Secret } = createRequire(path.join(process.argv[2], 'package.json'))(process.argv[2])
const only = process.argv.slice(3)
const calls = []
const call = (name, run) => calls.push([name, run])
const same = (got, wanted) => {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(`${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`)
}
const fails = async (run, name) => {
  try {
    await run()
  } catch (error) {
    if (name && error.name !== name) throw new Error(`${error.name} (${error.message}), not ${name}`)
    return error
  }
  throw new Error('it did not fail')
}
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
let sandbox

call('create', async () => {
  sandbox = await Sandbox.create({ timeoutMs: 300000, metadata: { app: 'test a' }, envs: { FROM_CREATE: 'yes' } })
})
call('isRunning', async () => same(await sandbox.isRunning(), true))
call('getInfo', async () => same((await sandbox.getInfo()).metadata, { app: 'test a' }))
call('list', async () => {
  const listed = Sandbox.list({ query: { metadata: { app: 'test a' } } })
  const found = Array.isArray(listed) ? listed : await (listed.nextItems ? listed.nextItems() : listed)
  if (!found.some((one) => one.sandboxId === sandbox.sandboxId)) throw new Error('it is not listed')
  const other = Sandbox.list({ query: { metadata: { app: 'other' } } })
  same((await (other.nextItems ? other.nextItems() : other)).length, 0)
})
call('setTimeout', async () => sandbox.setTimeout(200000))
call('connect', async () => same(await (await Sandbox.connect(sandbox.sandboxId)).isRunning(), true))
call('commands.run', async () => {
  const done = await sandbox.commands.run('echo out; echo $FROM_CREATE $MINE; pwd', { envs: { MINE: 'mine' } })
  same([done.exitCode, done.stdout], [0, 'out\nyes mine\n/home/user\n'])
})
call('commands.run exit code', async () => {
  const error = await fails(() => sandbox.commands.run('echo no >&2; exit 3'), 'CommandExitError')
  same([error.exitCode, error.stderr.endsWith('no\n')], [3, true])
})
call('commands.run timeout', async () => fails(() => sandbox.commands.run('sleep 100', { timeoutMs: 500 }), 'TimeoutError'))
call('commands.run cwd', async () => same((await sandbox.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n'))
call('commands.run large output', async () =>
  same((await sandbox.commands.run('head -c 5000000 /dev/zero | tr "\\0" x')).stdout.length, 5000000))
call('commands background', async () => {
  const command = await sandbox.commands.run('for i in 1 2 3; do echo $i; sleep 0.1; done', { background: true })
  same((await command.wait()).stdout, '1\n2\n3\n')
})
call('commands.list', async () => {
  const command = await sandbox.commands.run('sleep 1000', { background: true })
  same((await sandbox.commands.list()).some((one) => one.pid === command.pid), true)
  same([await sandbox.commands.kill(command.pid), await sandbox.commands.kill(4000000)], [true, false])
})
call('commands.sendStdin', async () => {
  const command = await sandbox.commands.run('head -n 1', { background: true, stdin: true })
  await sandbox.commands.sendStdin(command.pid, 'hello\n')
  same((await command.wait()).stdout, 'hello\n')
})
call('commands.closeStdin', async () => {
  if (!sandbox.commands.closeStdin) return 'not in this version'
  const command = await sandbox.commands.run('cat', { background: true, stdin: true })
  await sandbox.commands.sendStdin(command.pid, 'hello')
  await sandbox.commands.closeStdin(command.pid)
  same((await command.wait()).stdout, 'hello')
})
call('commands.connect', async () => {
  const first = await sandbox.commands.run('for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.2; done', { background: true })
  await first.disconnect()
  const again = await sandbox.commands.connect(first.pid)
  same((await again.wait()).exitCode, 0)
})
call('pty', async () => {
  let output = ''
  const pty = await sandbox.pty.create({
    cols: 80, rows: 24, onData: (data) => { output += new TextDecoder().decode(data) }, timeoutMs: 20000 })
  await sandbox.pty.resize(pty.pid, { cols: 100, rows: 30 })
  await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('stty size; exit 4\n'))
  const error = await fails(() => pty.wait(), 'CommandExitError')
  same([error.exitCode, output.includes('30 100')], [4, true])
})
call('files.write and read', async () => {
  const made = await sandbox.files.write('dir/a b.txt', 'hello')
  same([made.path, await sandbox.files.read('dir/a b.txt')], ['/home/user/dir/a b.txt', 'hello'])
  await sandbox.files.write('empty', '')
  same(await sandbox.files.read('empty'), '')
})
call('files.write several', async () => {
  await sandbox.files.write([{ path: 'm/1', data: 'one' }, { path: 'm/2', data: 'two' }])
  same(await sandbox.files.read('m/2'), 'two')
})
call('files.write large', async () => {
  const data = new Uint8Array(20000000).map((_, at) => at % 251)
  await sandbox.files.write('large', data.buffer)
  same(Buffer.compare(Buffer.from(await sandbox.files.read('large', { format: 'bytes' })), Buffer.from(data)), 0)
})
call('files.read stream', async () => {
  let size = 0
  for await (const piece of await sandbox.files.read('large', { format: 'stream' })) size += piece.length
  same(size, 20000000)
})
call('files.exists', async () => same([await sandbox.files.exists('large'), await sandbox.files.exists('none')], [true, false]))
call('files.read missing', async () => fails(() => sandbox.files.read('none')))
call('files.list', async () => {
  same((await sandbox.files.list('m')).map((one) => [one.name, one.type]), [['1', 'file'], ['2', 'file']])
})
call('files.makeDir', async () => same([await sandbox.files.makeDir('new'), await sandbox.files.makeDir('new')], [true, false]))
call('files.rename', async () => same((await sandbox.files.rename('m/1', 'm/3')).path, '/home/user/m/3'))
call('files.getInfo', async () => {
  if (!sandbox.files.getInfo) return 'not in this version'
  same((await sandbox.files.getInfo('m/3')).size, 3)
})
call('files.remove', async () => {
  await sandbox.files.remove('m')
  same(await sandbox.files.exists('m'), false)
})
call('files.watchDir', async () => {
  const seen = []
  await sandbox.files.makeDir('watched')
  const watch = await sandbox.files.watchDir('watched', (event) => { seen.push(event.name) })
  await sandbox.files.write('watched/new', 'x')
  for (let i = 0; i < 100 && !seen.includes('new'); i++) await sleep(50)
  await watch.stop()
  same(seen.includes('new'), true)
})
call('files as the sandbox sees them', async () => {
  await sandbox.commands.run('ln -s /etc/hostname link; echo $$ > mine')
  same(await sandbox.files.read('link'), (await sandbox.commands.run('cat /etc/hostname')).stdout)
})
call('files.write gzip', async () => {
  await sandbox.files.write('zipped', 'z'.repeat(100000), { gzip: true })
  same((await sandbox.files.read('zipped', { gzip: true })).length, 100000)
})
call('files metadata', async () => {
  if (!sandbox.files.getInfo) return 'not in this version'
  const made = await sandbox.files.write('tagged', 'x', { metadata: { kind: 'report' } })
  if (!made.metadata) return 'not in this version'
  same((await sandbox.files.getInfo('tagged')).metadata, { kind: 'report' })
  same((await sandbox.files.list('.')).find((one) => one.name === 'tagged').metadata, { kind: 'report' })
})
const plain = (url, method, body) => new Promise((done, failed) => {
  const to = new URL(url)
  const request = (to.protocol === 'https:' ? https : http).request({ host: '127.0.0.1', port: to.port,
    servername: 'localhost', path: to.pathname + to.search, method, headers: {
    Host: `49983-${sandbox.sandboxId}.localhost:${to.port}`, ...(body && { 'Content-Type': 'application/octet-stream' }) } },
  (answer) => {
    let text = ''
    answer.on('data', (piece) => { text += piece }).on('end', () => done([answer.statusCode, text]))
  })
  request.on('error', failed).end(body)
})
call('signed URLs', async () => {
  await sandbox.files.write('signed', 'by url')
  const url = await sandbox.downloadUrl('signed', { useSignatureExpiration: 60 })
  same(await plain(url, 'GET'), [200, 'by url'])
  same((await plain(url.replace('path=signed', 'path=zipped'), 'GET'))[0], 401)
  same((await plain(await sandbox.uploadUrl('signed'), 'POST', 'anew'))[0], 200)
  same(await sandbox.files.read('signed'), 'anew')
})
call('ports', async () => {
  const server = 'import http.server as h, socketserver\n' +
    'class H(h.BaseHTTPRequestHandler):\n def do_GET(self):\n  self.send_response(200); self.end_headers(); self.wfile.write(b"inside")\n' +
    'h.HTTPServer(("127.0.0.1", 8080), H).serve_forever()'
  await sandbox.files.write('server.py', server)
  const command = await sandbox.commands.run('python3 server.py', { background: true })
  const url = new URL(process.env.E2B_API_URL)
  let answer
  for (let i = 0; i < 100; i++) {
    answer = await fetch(url, { headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '8080' } })
    if (answer.status === 200) break
    await sleep(100)
  }
  same([answer.status, await answer.text()], [200, 'inside'])
  await command.kill()
})
call('getHost', async () => same(sandbox.getHost(8080).startsWith(`8080-${sandbox.sandboxId}.`), true))
call('pause and connect', async () => {
  const pause = sandbox.pause ?? sandbox.betaPause
  if (!pause) return 'not in this version'
  await sandbox.files.write('kept', 'kept')
  await pause.call(sandbox)
  sandbox = await Sandbox.connect(sandbox.sandboxId)
  same(await sandbox.files.read('kept'), 'kept')
})
call('getMetrics', async () => {
  if (!sandbox.getMetrics) return 'not in this version'
  same(Array.isArray(await sandbox.getMetrics()), true)
})
call('getMetrics disk', async () => {
  await sandbox.commands.run('head -c 5000000 /dev/urandom > on-disk')
  for (let i = 0; i < 200; i++) {
    const last = (await sandbox.getMetrics()).at(-1)
    if (last && last.diskUsed > 5000000 && last.diskUsed < last.diskTotal) return
    await sleep(100)
  }
  throw new Error('no metric says what is on the disk')
})
call('createSnapshot', async () => {
  if (!sandbox.createSnapshot) return 'not in this version'
  await sandbox.files.write('snapshot', 'yes')
  const taken = await sandbox.createSnapshot()
  const other = await Sandbox.create(taken.snapshotId)
  same(await other.files.read('snapshot'), 'yes')
  await other.kill()
})
call('fork', async () => {
  if (!sandbox.fork) return 'not in this version'
  await sandbox.files.write('forked', 'yes')
  const made = (await sandbox.fork({ count: 1 })).flat().map((one) => one.sandbox ?? one)
  same(await made[0].files.read('forked'), 'yes')
  await made[0].kill()
})
call('network rules', async () => {
  if (!sandbox.updateNetwork) return 'not in this version'
  const rules = (host, value) => ({ rules: { [host]: [{ transform: { headers: { 'X-Key': value } } }] } })
  const made = await Sandbox.create({ network: rules('read.example', 'one') })
  try {
    await made.updateNetwork(rules('read.example', 'two'))
    const error = await fails(() => made.updateNetwork(rules('other.example', 'two')))
    same([error.message.includes('403'), error.message.includes('other.example')], [true, true])
    await fails(() => Sandbox.create({ network: rules('other.example', 'one') }))
  } finally {
    await made.kill()
  }
})
call('secrets', async () => {
  if (!Secret) return 'not in this version'
  const made = await Secret.create('Client-Key', 'sk-one-0123456789abcdef', { metadata: { team: 'a' } })
  try {
    same([made.name, made.version, made.metadata], ['client-key', 1, { team: 'a' }])
    same((await Secret.update('client-key', 'sk-two-0123456789abcdef')).version, 2)
    same((await Secret.getInfo(made.secretId)).name, 'client-key')
    same((await Secret.list({ limit: 1 }).nextItems()).map((one) => one.secretId), [made.secretId])
    const headers = { authorization: 'Bearer ' + Secret.fill('client-key') }
    const other = await Sandbox.create({ network: { rules: { 'read.example': [{ transform: { headers } }] } } })
    await other.kill()
  } finally {
    same(await Secret.destroy(made.secretId), true)
  }
  same([await Secret.exists('client-key'), await Secret.destroy('client-key')], [false, false])
})
call('kill while a command runs', async () => {
  const other = await Sandbox.create({ timeoutMs: 60000 })
  const command = await other.commands.run('sleep 1000', { background: true })
  await other.kill()
  await fails(() => command.wait())
})
call('two clients of one command', async () => {
  const one = await sandbox.commands.run('read x; echo "got $x"', { background: true, stdin: true })
  const two = await sandbox.commands.connect(one.pid)
  await sandbox.commands.sendStdin(one.pid, 'it\n')
  same([(await one.wait()).stdout, (await two.wait()).stdout], ['got it\n', 'got it\n'])
})
call('many commands at once', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, (_, at) => sandbox.commands.run(`echo ${at}`)))
  same(all.map((one) => one.stdout), Array.from({ length: 20 }, (_, at) => `${at}\n`))
})
call('unknown user', async () => fails(() => sandbox.commands.run('true', { user: 'nobody-such' })))
call('kill', async () => {
  // Older versions say nothing.
  if ((await sandbox.kill()) === false) throw new Error('it was not there')
  same(await sandbox.isRunning(), false)
  same(await Sandbox.kill(sandbox.sandboxId), false)
})
call('after kill', async () => fails(() => sandbox.commands.run('true')))

for (const [name, run] of calls) {
  if (only.length && !only.includes(name) && name !== 'create') continue
  let line
  try {
    line = { call: name, ok: true, detail: await run() }
  } catch (error) {
    line = { call: name, ok: false, detail: `${error.name}: ${error.message}` }
  }
  console.log(JSON.stringify(line))
}
process.exit(0)
