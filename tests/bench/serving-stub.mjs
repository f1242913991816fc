// SPDX-License-Identifier: Apache-2.0
// What the npm client e2b talks to in the place of `atoll serve`, with nothing behind it: a create answers at once,
// Start runs `bash -l -c` of the same command on this machine, files are in memory. Prints its address.
import { spawn } from 'node:child_process'
import http from 'node:http'

const files = new Map()
const envelope = (flags, value) => {
  const text = Buffer.from(JSON.stringify(value))
  const head = Buffer.alloc(5)
  head[0] = flags
  head.writeUInt32BE(text.length, 1)
  return Buffer.concat([head, text])
}
const body = (request) => new Promise((done) => {
  const pieces = []
  request.on('data', (piece) => pieces.push(piece)).on('end', () => done(Buffer.concat(pieces)))
})
const json = (answer, status, value) => {
  answer.writeHead(status, { 'Content-Type': 'application/json' })
  answer.end(JSON.stringify(value))
}
const start = async (request, answer) => {
  const { process: wanted } = JSON.parse((await body(request)).subarray(5))
  answer.writeHead(200, { 'Content-Type': 'application/connect+json' })
  const child = spawn(wanted.cmd, wanted.args, { stdio: ['ignore', 'pipe', 'pipe'] })
  answer.write(envelope(0, { event: { start: { pid: child.pid } } }))
  for (const [stream, name] of [[child.stdout, 'stdout'], [child.stderr, 'stderr']])
    stream.on('data', (data) => answer.write(envelope(0, { event: { data: { [name]: data.toString('base64') } } })))
  child.on('close', (code) => {
    answer.write(envelope(0, { event: { end: { exitCode: code, exited: true, status: `exit status ${code}` } } }))
    answer.end(envelope(2, {}))
  })
}
// Of a form the one file that is in it; else the body itself.
const content = (request, data) => {
  const boundary = /boundary=([^;]+)/.exec(request.headers['content-type'] ?? '')?.[1]
  if (!boundary) return data
  const from = data.indexOf('\r\n\r\n') + 4
  return data.subarray(from, data.lastIndexOf(`\r\n--${boundary}`))
}
const server = http.createServer(async (request, answer) => {
  const url = new URL(request.url, 'http://localhost')
  if (url.pathname.endsWith('/Start')) return start(request, answer)
  if (url.pathname === '/files' && request.method === 'POST') {
    const path = url.searchParams.get('path')
    files.set(path, content(request, await body(request)))
    return json(answer, 200, [{ name: path, type: 'file', path }])
  }
  if (url.pathname === '/files') {
    const data = files.get(url.searchParams.get('path'))
    answer.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': data.length })
    return answer.end(data)
  }
  await body(request)
  if (request.method === 'DELETE') return answer.writeHead(204).end()
  json(answer, 201, { sandboxID: 'stub', templateID: 'base', clientID: 'stub', envdVersion: process.argv[2] })
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
