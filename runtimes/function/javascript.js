// SPDX-License-Identifier: Apache-2.0
// Runs one function of JavaScript once: loads it, says that it is ready, and calls it with the event that comes then.
'use strict'
const fs = require('fs')
const path = require('path')
const { pathToFileURL } = require('url')

const fail = (text) => {
  try { fs.writeSync(2, `${text}\n`) } catch { /* nobody reads it */ }
  process.reallyExit(1)
}

const writeAll = (fd, bytes) => {
  for (let at = 0; at < bytes.length;) {
    try {
      at += fs.writeSync(fd, bytes, at)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

const load = async (entry) => {
  const at = entry.lastIndexOf(':')
  const [file, name] = [entry.slice(0, at), entry.slice(at + 1)]
  if (at < 1 || !name) fail('the entry point of a JavaScript function is FILE:FUNCTION, such as main.js:handler')
  if (!fs.existsSync(file)) fail(`the archive has no file ${file}`)
  const module = await import(pathToFileURL(path.resolve(file)).href)
  const handler = module[name] ?? module.default?.[name]
  if (typeof handler !== 'function') fail(`${file} exports no function ${name}`)
  return handler
}

const readInvocation = () => {
  const text = fs.readFileSync(0)
  const end = text.indexOf(10)
  const [invocation, size] = text.subarray(0, end < 0 ? 0 : end).toString().split(' ')
  // An event that did not come as a whole is none: its client has gone away.
  if (end < 0 || text.length - end - 1 !== Number(size)) process.reallyExit(1)
  return [invocation, text.subarray(end + 1).toString()]
}

const main = async () => {
  const handler = await load(process.argv[2])
  fs.writeSync(3, '\x06')
  const [invocation, text] = readInvocation()
  const until = Date.now() + Number(process.env.ATOLL_TIMEOUT_MS || 0)
  const context = {
    invocation, function: process.env.ATOLL_FUNCTION, remainingMs: () => Math.max(0, until - Date.now()),
  }
  const answer = await handler(text.trim() ? JSON.parse(text) : null, context)
  writeAll(3, Buffer.from(JSON.stringify(answer) ?? 'null'))
  process.reallyExit(0)
}

main().catch((error) => fail(error?.stack ?? String(error)))
