// SPDX-License-Identifier: Apache-2.0
// Driver of a JavaScript context of the code interpreter: runs the cells that it reads, and says what came of them
// (python.py has how). Requests come by descriptor 3; its lines stand in frames in 4 and 5, which are standard output and
// error. Cells are evaluated by the inspector, as in a console: they may await, and declare a name again.
const { createRequire } = require('node:module')
const fs = require('node:fs')
const inspector = require('node:inspector')
const path = require('node:path')
const util = require('node:util')

const LINE_MAX = 8 << 20
const FRAME_MAX = 4096
const mark = Buffer.from('\x1e' + process.argv[2])
const formats = {
  'text/plain': 'text', 'text/html': 'html', 'text/markdown': 'markdown', 'image/svg+xml': 'svg', 'image/png': 'png',
  'image/jpeg': 'jpeg', 'application/pdf': 'pdf', 'text/latex': 'latex', 'application/json': 'json',
  'application/javascript': 'javascript',
}
let number = 0
let count = 0
let interrupt = null

// A frame is one write that a pipe takes as a whole; the pipe may be one that does not wait.
function writeFrame (fd, piece) {
  const frame = Buffer.concat([mark, Buffer.from(piece.length.toString(16).padStart(4, '0')), piece])
  for (;;) {
    try {
      fs.writeSync(fd, frame)
      return
    } catch (error) {
      if (error.code !== 'EAGAIN') process.exit(1)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
    }
  }
}

function say (type, values) {
  const text = JSON.stringify({ id: number, type, ...values }, (_, value) => typeof value === 'bigint' ? String(value) : value)
  const line = Buffer.from(text.replace(/\\u0000|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])/g, '\\ufffd') + '\n')
  const room = FRAME_MAX - mark.length - 4
  for (const fd of type === 'end' ? [5, 4] : [4]) {
    for (let at = 0; at < line.length; at += room) writeFrame(fd, line.subarray(at, at + room))
  }
}

// All that can be shown of a value, by the names of clients; _toMime() as other kernels have it.
function formatsOf (value) {
  const shown = { text: util.inspect(value, { depth: 4, maxArrayLength: 200 }) }
  try {
    if (value !== null && typeof value === 'object' && typeof value._toMime === 'function') {
      for (const [kind, content] of Object.entries(value._toMime())) shown[formats[kind] ?? kind] = content
    }
  } catch {
    // What cannot be shown so is shown as text.
  }
  return shown
}

function give (shown, isMain) {
  const { id, type, ...own } = shown
  let size = LINE_MAX
  try {
    size = JSON.stringify(own).length
  } catch {
    // It goes round in a circle.
  }
  const text = typeof own.text === 'string' ? own.text.slice(0, LINE_MAX / 16) : ''
  say('result', { ...(size > LINE_MAX / 2 ? { text } : own), is_main_result: isMain })
}

const session = new inspector.Session()
session.connect()

function post (method, values) {
  return new Promise((resolve, reject) => {
    session.post(method, values, (error, result) => error ? reject(new Error(error.message)) : resolve(result))
  })
}

// The value itself of what the inspector names.
const held = Symbol('held')
async function valueOf (remote) {
  if (!remote.objectId) {
    if (!remote.unserializableValue) return remote.value
    const shown = remote.unserializableValue
    return shown.endsWith('n') ? BigInt(shown.slice(0, -1)) : Number(shown)
  }
  globalThis[held] = (value) => { globalThis[held] = { value } }
  await post('Runtime.callFunctionOn', {
    objectId: remote.objectId, functionDeclaration: 'function (value) { globalThis[Object.getOwnPropertySymbols(globalThis)' +
      '.find((one) => one.description === "held")](value) }', arguments: [{ objectId: remote.objectId }],
  })
  const { value } = globalThis[held]
  delete globalThis[held]
  await post('Runtime.releaseObject', { objectId: remote.objectId })
  return value
}

// import NAME, { A as B } from 'X', which a console does not have, is the same by a function.
function withImports (code) {
  return code.replace(/^[ \t]*import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s+|\{([^}]*)\}\s*)?from\s*(['"][^'"\n]+['"])/gm,
    (_, one, all, some, from) => {
      const names = (some ?? '').replace(/\s+as\s+/g, ': ')
      const parts = [...(one ? [`default: ${one}`] : []), ...(names.trim() ? [names] : [])]
      return `const ${all && !one ? all : `{ ${parts.join(', ')} }`} = await importModule(${from})`
    }).replace(/^[ \t]*import\s*(['"][^'"\n]+['"])/gm, 'await importModule($1)')
}

// A package of the working directory, or one that is installed for all.
function findPackage (name) {
  for (const place of [process.cwd(), '/usr/local/lib', '/usr/lib', path.dirname(path.dirname(process.execPath)) + '/lib']) {
    try {
      return createRequire(path.join(place, 'cell.js'))(name)
    } catch {
      // The next one may have it.
    }
  }
}

function stripTypes (strip, code) {
  process.removeAllListeners('warning')
  try {
    return strip(code)
  } catch (error) {
    // Of an enum, say, more is left than nothing.
    if (error.code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') throw error
    return strip(code, { mode: 'transform' })
  }
}

// By Node.js itself where it can, and else by what is installed.
function withoutTypes (code) {
  const { stripTypeScriptTypes } = require('node:module')
  if (stripTypeScriptTypes) return stripTypes(stripTypeScriptTypes, code)
  const typescript = findPackage('typescript')
  if (typescript?.transpileModule) {
    const { ModuleKind, ScriptTarget } = typescript
    const compilerOptions = { module: ModuleKind.ESNext, target: ScriptTarget.ES2022, verbatimModuleSyntax: true }
    return typescript.transpileModule(code, { compilerOptions }).outputText
  }
  const esbuild = findPackage('esbuild')
  if (esbuild) return esbuild.transformSync(code, { loader: 'ts', target: 'es2022' }).code
  throw new Error(`TypeScript needs Node.js 22.13 or newer, or the npm package esbuild, or typescript before 7: this is ${process.version}`)
}

function sayError (error) {
  const isError = util.types.isNativeError(error)
  const stack = isError && typeof error.stack === 'string' ? error.stack : util.inspect(error)
  say('error', {
    name: isError ? String(error.name) : 'Error', value: isError ? String(error.message) : util.inspect(error),
    traceback: stack.split('\n').filter((line) => !/\bnode:|evalmachine|\[eval\]/.test(line)).join('\n'),
  })
}

async function evaluate (code) {
  const asked = post('Runtime.evaluate', { expression: code, replMode: true, awaitPromise: true, generatePreview: false })
  const stopped = new Promise((_resolve, reject) => { interrupt = () => reject(new Error('the execution was interrupted')) })
  const { result, exceptionDetails } = await Promise.race([asked, stopped])
  if (exceptionDetails) {
    throw exceptionDetails.exception ? await valueOf(exceptionDetails.exception) : new Error(exceptionDetails.text)
  }
  return await valueOf(result)
}

async function run (request) {
  const before = { ...process.env }
  number = request.id
  say('number_of_executions', { execution_count: ++count })
  Object.assign(process.env, request.env)
  try {
    const code = request.language === 'typescript' ? withoutTypes(request.code) : request.code
    const value = await evaluate(withImports(code))
    if (value !== undefined) give(formatsOf(value), true)
  } catch (error) {
    sayError(error)
  }
  interrupt = null
  for (const name of Object.keys(request.env)) {
    if (name in before) process.env[name] = before[name]
    else delete process.env[name]
  }
  say('end', {})
}

globalThis.require = createRequire(path.join(process.cwd(), 'cell.js'))
globalThis.importModule = (name) => /^\.{0,2}\//.test(name) ? import(path.resolve(name)) : import(
  name.includes(':') || require('node:module').isBuiltin(name) ? name : globalThis.require.resolve(name))
globalThis.display = (value) => give(formatsOf(value), false)
process.on('SIGINT', () => interrupt?.())
process.on('uncaughtException', (error) => console.error(error))
process.on('unhandledRejection', (error) => console.error(error))

let rest = Buffer.alloc(0)
const piece = Buffer.alloc(1 << 16)
function read () {
  fs.read(3, piece, 0, piece.length, null, async (error, size) => {
    if (error || !size) process.exit(0)
    rest = Buffer.concat([rest, piece.subarray(0, size)])
    for (let end; (end = rest.indexOf(10)) >= 0;) {
      const line = rest.subarray(0, end)
      rest = rest.subarray(end + 1)
      await run(JSON.parse(line.toString()))
    }
    read()
  })
}
read()
