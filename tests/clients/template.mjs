// SPDX-License-Identifier: Apache-2.0
// What a program that builds templates with the npm package e2b does, call by call: one JSON line a call, {"call", "ok",
// "detail"}. Arguments: the package's directory, and the name of an imported system. Environment: the three variables
// that `atoll serve` prints.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'

const { Sandbox, Template, waitForFile } =
  createRequire(path.join(process.argv[2], 'package.json'))(process.argv[2])
const image = process.argv[3]
const context = fs.mkdtempSync(path.join(os.tmpdir(), 'atoll-template-'))
const calls = []
const call = (name, run) => calls.push([name, run])
const same = (got, wanted) => {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(`${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`)
}
const fails = async (run, name, text) => {
  try {
    await run()
  } catch (error) {
    if (error.name !== name || !error.message.includes(text)) throw new Error(`${error.name}: ${error.message}`)
    return error
  }
  throw new Error('it did not fail')
}
const run = async (template, command, check) => {
  const sandbox = await Sandbox.create(template)
  try {
    check((await sandbox.commands.run(command)).stdout)
  } finally {
    await sandbox.kill()
  }
}
fs.mkdirSync(path.join(context, 'app', 'sub'), { recursive: true })
fs.writeFileSync(path.join(context, 'app', 'a.txt'), 'A')
fs.writeFileSync(path.join(context, 'app', 'sub', 'b.txt'), 'B')
fs.symlinkSync('a.txt', path.join(context, 'app', 'link'))
fs.writeFileSync(path.join(context, 'run.sh'), '#!/bin/sh\necho ran\n')
const from = () => Template({ fileContextPath: context })
const whole = () => from().fromTemplate('base')
  .setEnvs({ FIRST: '1', SECOND: '$FIRST-2' }).setWorkdir('/home/user/work')
  .copy('app', 'app/').copy('run.sh', 'bin/run', { mode: 0o755 }).copy('*.sh', 'all/')
  .runCmd(['bin/run >said', 'cat app/link app/sub/b.txt >>said']).makeDir('made').rename('made', 'moved').remove('all', { recursive: true })
  .setStartCmd('python3 -m http.server 8123 --bind 127.0.0.1', waitForFile('/home/user/work/said'))
let logs = []
const build = (template, name, options) => {
  logs = []
  return Template.build(template, name, { onBuildLogs: (entry) => logs.push(entry.message), ...options })
}

call('Template.exists of none', async () => same(await Template.exists('mine'), false))
call('Template.build', async () => {
  const made = await build(whole(), 'mine:v1', { tags: ['stable'], cpuCount: 2, memoryMB: 1024 })
  same([made.name, made.tags], ['mine:v1', ['v1', 'stable']])
})
call('Template.build of unchanged steps', async () => {
  await build(whole(), 'mine:v1')
  same(logs.filter((line) => line.startsWith('CACHED')).length > 5, true)
})
call('Template.build skipCache', async () => {
  await build(whole(), 'mine:v1', { skipCache: true })
  same(logs.filter((line) => line.startsWith('CACHED')).length, 0)
})
call('Template.exists', async () => same(await Template.exists('mine'), true))
call('Sandbox.create', () => run('mine:v1', 'echo $FIRST $SECOND; pwd; cat said; ls', (out) =>
  same(out, '1 1-2\n/home/user/work\nran\nABapp\nbin\nmoved\nsaid\n')))
call('fromTemplate', async () => {
  await build(from().fromTemplate('mine:stable').runCmd('echo $SECOND >more'), 'more')
  await run('more', 'cat more', (out) => same(out, '1-2\n'))
})
call('fromImage, and an imported system by its name', async () => {
  await build(from().fromImage(image).runCmd('id -u >/etc/who', { user: 'root' }), 'of-image')
  for (const [name, file, text] of [['of-image', '/etc/who', '0\n'], [image, '/etc/mark', 'of the root\n']]) {
    const sandbox = await Sandbox.create(name)
    same(await sandbox.files.read(file), text)
    await sandbox.kill()
  }
})
call('fromImage of a registry', () =>
  fails(() => build(from().fromPythonImage('3'), 'absent'), 'BuildError', 'atoll template import'))
call('a step that fails', async () =>
  fails(() => build(from().fromTemplate('base').runCmd('true').runCmd('exit 3'), 'bad'), 'BuildError', 'exit code 3'))
call('Template.buildInBackground', async () => {
  const made = await Template.buildInBackground(from().fromTemplate('base').runCmd('echo here'), 'later')
  let status
  while (!status || status.status === 'building' || status.status === 'waiting') status = await Template.getBuildStatus(made)
  same(status.status, 'ready')
})
call('Template.assignTags', async () => same((await Template.assignTags('mine:v1', ['a', 'b'])).tags, ['a', 'b']))
call('Template.getTags', async () => same((await Template.getTags('mine')).map((one) => one.tag).sort(), ['a', 'b', 'stable', 'v1']))
call('Template.removeTags', async () => {
  await Template.removeTags('mine', ['a'])
  same((await Template.getTags('mine')).length, 3)
})

for (const [name, one] of calls) {
  let line = { call: name, ok: true }
  try {
    await one()
  } catch (error) {
    line = { call: name, ok: false, detail: `${error.name}: ${error.message}`.slice(0, 800) }
  }
  console.log(JSON.stringify(line))
}
fs.rmSync(context, { recursive: true })
