// SPDX-License-Identifier: Apache-2.0
// Times what a program sees that uses the npm package e2b: of `atoll serve` and of a stub, in turn. Arguments: the
// package, the rounds. Environment: ATOLL_URL, ATOLL_KEY, STUB_URL. One JSON object: {name: {atoll: [ms], stub: [ms]}}.
import { createRequire } from 'node:module'
import path from 'node:path'

const { Sandbox, Template } = createRequire(path.join(process.argv[2], 'package.json'))(process.argv[2])
const rounds = Number(process.argv[3])
const places = {
  atoll: { apiKey: process.env.ATOLL_KEY, apiUrl: process.env.ATOLL_URL, sandboxUrl: process.env.ATOLL_URL },
  stub: { apiKey: process.env.ATOLL_KEY, apiUrl: process.env.STUB_URL, sandboxUrl: process.env.STUB_URL },
}
const times = {}
const timed = async (name, who, run) => {
  const begun = performance.now()
  const value = await run()
  times[name] ??= {}
  times[name][who] ??= []
  times[name][who].push(performance.now() - begun)
  return value
}
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
const inTurn = async (name, count, run) => {
  for (let i = 0; i < count; i++)
    for (const who of Object.keys(places)) await timed(name, who, () => run(who))
}

// The first teaches the pool that sandboxes are wanted, and both sides of the client's own code.
const sandboxes = {}
for (const who of Object.keys(places)) sandboxes[who] = await Sandbox.create(places[who])
for (let i = 0; i < 5; i++)
  for (const who of Object.keys(places)) await (await Sandbox.create(places[who])).kill()
for (let i = 0; i < rounds; i++) {
  await sleep(100)
  for (const who of Object.keys(places)) {
    const made = await timed('create', who, () => Sandbox.create(places[who]))
    await made.kill()
  }
}
await inTurn("commands.run('true')", rounds, (who) => sandboxes[who].commands.run('true'))
const data = Buffer.alloc(16 << 20, 'x')
await inTurn('files.write, 16 MiB', Math.ceil(rounds / 4), (who) =>
  sandboxes[who].files.write('/tmp/data', new Blob([data])))
await inTurn('files.read, 16 MiB', Math.ceil(rounds / 4), (who) =>
  sandboxes[who].files.read('/tmp/data', { format: 'bytes' }))

// A template whose steps were all done before.
const build = () => Template.build(
  Template().fromTemplate('base').setEnvs({ A: '1' }).setWorkdir('/home/user/w').runCmd('echo $A >a').runCmd('true'),
  'bench', places.atoll)
await build()
const buildsMs = []
for (let i = 0; i < rounds; i++) {
  const begun = performance.now()
  await build()
  buildsMs.push(performance.now() - begun)
}

// 50 clients at once, each with its share of 500 creates; the sandboxes stay until the end.
const failures = []
const burst = async (who, count) => {
  const made = []
  let left = count
  const begun = performance.now()
  await Promise.all(Array.from({ length: 50 }, async () => {
    while (left-- > 0)
      try {
        made.push(await timed(`create, ${count} by 50 at once`, who, () => Sandbox.create(places[who])))
      } catch (error) {
        failures.push(`${who}: ${error}`)
      }
  }))
  const ms = performance.now() - begun
  if (who === 'atoll') for (const one of made) await one.kill()
  return ms
}
const all = { atoll: await burst('atoll', 5 * rounds), stub: await burst('stub', 5 * rounds) }
await sandboxes.atoll.kill()
console.log(JSON.stringify({ times, burst_ms: all, builds_ms: buildsMs, failures }))
