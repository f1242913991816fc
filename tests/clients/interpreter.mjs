// SPDX-License-Identifier: Apache-2.0
// What a program that uses the npm package @e2b/code-interpreter does, call by call: as e2b.mjs.
import { createRequire } from 'node:module'
import path from 'node:path'

const { Sandbox } = createRequire(path.join(process.argv[2], 'package.json'))(process.argv[2])
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
let sandbox

call('create', async () => {
  sandbox = await Sandbox.create({ timeoutMs: 300000, envs: { FROM_CREATE: 'yes' } })
})
call('runCode', async () => same((await sandbox.runCode('x = 20\nx + 1')).text, '21'))
call('runCode keeps its state', async () => same((await sandbox.runCode('x')).text, '20'))
call('runCode stdout and stderr', async () => {
  const seen = []
  const done = await sandbox.runCode('import sys\nprint("out é")\nprint("err", file=sys.stderr)', {
    onStdout: (one) => seen.push(one.line), onStderr: (one) => seen.push(one.line),
  })
  same([done.logs.stdout.join(''), done.logs.stderr.join(''), seen.length], ['out é\n', 'err\n', 2])
})
call('runCode error', async () => {
  let seen
  const done = await sandbox.runCode('1 / 0', { onError: (error) => { seen = error } })
  same([done.error.name, done.error.value, seen.name], ['ZeroDivisionError', 'division by zero', 'ZeroDivisionError'])
  same(done.error.traceback.includes('line 1'), true)
})
call('runCode results', async () => {
  const seen = []
  const done = await sandbox.runCode('class A:\n  def _repr_html_(self): return "<b>"\ndisplay(A())\n"end"',
    { onResult: (result) => seen.push(result) })
  same([done.results[0].html, done.results[0].isMainResult, done.text, seen.length], ['<b>', false, 'end', 2])
})
call('runCode envs', async () => {
  const code = 'import os; [os.environ.get("FROM_CREATE"), os.environ.get("MINE")]'
  same((await sandbox.runCode(code, { envs: { MINE: 'mine' } })).text, "['yes', 'mine']")
  same((await sandbox.runCode(code)).text, "['yes', None]")
})
call('runCode time-out', async () => {
  await fails(() => sandbox.runCode('import time; time.sleep(1000)', { timeoutMs: 500 }), 'TimeoutError')
  same((await sandbox.runCode('x')).text, '20')
})
call('runCode await', async () => same((await sandbox.runCode('import asyncio\nawait asyncio.sleep(0, 7)')).text, '7'))
call('runCode exit', async () => {
  same((await sandbox.runCode('import os; os._exit(1)')).error.name, 'UnexpectedEndOfExecution')
  same((await sandbox.runCode('x')).error.name, 'NameError')
})
call('runCode large', async () => {
  same((await sandbox.runCode('print("y" * 3000000)')).logs.stdout.join('').length, 3000001)
  same((await sandbox.runCode('"z" * 3000000')).text.length, 3000000)
})
call('runCode javascript', async () => {
  const done = await sandbox.runCode('const a = 2; await Promise.resolve(a * 21)', { language: 'javascript' })
  if (done.error?.name === 'InterpreterNotStarted' || done.error?.name === 'UnexpectedEndOfExecution') return 'no node here'
  same(done.text, '42')
})
call('runCode bash', async () => same((await sandbox.runCode('pwd', { language: 'bash' })).logs.stdout.join(''), '/home/user\n'))
for (const [language, code, text] of [['java', 'int x = 20; x + 1', '21'], ['r', 'x <- 20; x + 1', '[1] 21'],
  ['typescript', 'const x: number = 20; x + 1', '21']]) {
  call(`runCode ${language}`, async () => {
    const done = await sandbox.runCode(code, { language })
    if (done.error?.name === 'InterpreterNotStarted') return done.error.value
    if (/^TypeScript needs/.test(done.error?.value)) return done.error.value
    same(done.text, text)
  })
}
call('createCodeContext', async () => {
  const context = await sandbox.createCodeContext({ cwd: '/tmp', language: 'python' })
  same([context.language, context.cwd], ['python', '/tmp'])
  same((await sandbox.runCode('y = 1; import os; os.getcwd()', { context })).text, '/tmp')
  same((await sandbox.runCode('y')).error.name, 'NameError')
})
call('listCodeContexts', async () => {
  const languages = (await sandbox.listCodeContexts()).map((one) => one.language)
  same([languages.includes('python'), languages.includes('javascript')], [true, true])
})
call('restartCodeContext', async () => {
  const context = await sandbox.createCodeContext()
  await sandbox.runCode('y = 1', { context })
  await sandbox.restartCodeContext(context)
  same((await sandbox.runCode('y', { context })).error.name, 'NameError')
})
call('removeCodeContext', async () => {
  const context = await sandbox.createCodeContext()
  await sandbox.removeCodeContext(context)
  await fails(() => sandbox.runCode('1', { context }), 'NotFoundError')
  await fails(() => sandbox.removeCodeContext(context), 'NotFoundError')
})
call('files of runCode', async () => {
  await sandbox.files.write('/home/user/in.txt', 'content')
  same((await sandbox.runCode('open("in.txt").read()')).text, 'content')
})
call('many at once', async () => {
  const done = await Promise.all([...Array(20).keys()].map((at) => sandbox.runCode(`${at}`)))
  same(done.map((one) => one.text), [...Array(20).keys()].map(String))
})
call('pause and runCode', async () => {
  await sandbox.runCode('kept = 5')
  await sandbox.pause()
  await Sandbox.connect(sandbox.sandboxId)
  same((await sandbox.runCode('kept')).text, '5')
})
call('matplotlib', async () => {
  const done = await sandbox.runCode('import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4])\nplt.title("t")\nplt.show()')
  if (done.error?.name === 'ModuleNotFoundError') return 'not installed'
  same([done.results[0].png.slice(0, 5), done.results[0].chart.type, done.results[0].chart.title], ['iVBOR', 'line', 't'])
})
call('pandas', async () => {
  const done = await sandbox.runCode('import pandas\npandas.DataFrame({"a": [1, 2]})')
  if (done.error?.name === 'ModuleNotFoundError') return 'not installed'
  same([done.results[0].data, done.results[0].html.includes('<table')], [{ a: [1, 2] }, true])
})
call('kill while code runs', async () => {
  const other = await Sandbox.create()
  const running = fails(() => other.runCode('import time; print("x"); time.sleep(1000)'))
  await new Promise((resolve) => setTimeout(resolve, 500))
  await other.kill()
  await running
})
call('kill', async () => same(await sandbox.kill(), true))

for (const [name, run] of calls) {
  try {
    const detail = await run()
    console.log(JSON.stringify({ call: name, ok: true, detail }))
  } catch (error) {
    console.log(JSON.stringify({ call: name, ok: false, detail: `${error.name}: ${error.message}` }))
  }
}
process.exit(0)
