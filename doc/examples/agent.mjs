// SPDX-License-Identifier: Apache-2.0
// An agent in a page: a model that runs commands in a sandbox until it has an answer. It is written for the npm package
// e2b, and runs unchanged with `atoll serve`.
//
//   npm install e2b
//   export E2B_API_KEY=… E2B_API_URL=… E2B_SANDBOX_URL=…     the lines that atoll serve printed
//   export MODEL_URL=http://127.0.0.1:11434/v1 MODEL=qwen3    anything that speaks the API "chat/completions"
//   node agent.mjs "How many prime numbers are below 10,000?"
//
// The model and its key stay here, outside of the sandbox. What it runs sees neither, nor anything of this machine.
import { Sandbox } from 'e2b'

const TURNS_MAX = 20
const OUTPUT_MAX = 20000
const { MODEL_URL, MODEL = 'default', MODEL_KEY } = process.env
const tools = [{
  type: 'function',
  function: {
    name: 'shell',
    description: 'Runs a command by bash in a Linux sandbox. Files stay there from one command to the next.',
    parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  },
}]

async function ask(messages) {
  const answer = await fetch(`${MODEL_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(MODEL_KEY && { Authorization: `Bearer ${MODEL_KEY}` }) },
    body: JSON.stringify({ model: MODEL, messages, tools }),
  })
  if (!answer.ok) throw new Error(`the model answers ${answer.status}: ${await answer.text()}`)
  return (await answer.json()).choices[0].message
}

// A command that fails is an answer like any other: the model is to see it.
async function run(sandbox, call) {
  try {
    const { command } = JSON.parse(call.function.arguments)
    console.error(`$ ${command}`)
    const done = await sandbox.commands.run(command, { timeoutMs: 60000 }).catch((error) => error)
    if (done.exitCode === undefined) throw done
    return JSON.stringify({ exit: done.exitCode, stdout: done.stdout.slice(0, OUTPUT_MAX),
      stderr: done.stderr.slice(0, OUTPUT_MAX) })
  } catch (error) {
    return JSON.stringify({ error: String(error.message ?? error) })
  }
}

async function work(sandbox, task) {
  const messages = [{ role: 'user', content: task }]
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    const message = await ask(messages)
    messages.push(message)
    if (!message.tool_calls?.length) return message.content
    for (const call of message.tool_calls)
      messages.push({ role: 'tool', tool_call_id: call.id, content: await run(sandbox, call) })
  }
  throw new Error(`no answer after ${TURNS_MAX} turns`)
}

const sandbox = await Sandbox.create({ timeoutMs: 600000 })
try {
  console.log(await work(sandbox, process.argv[2]))
} finally {
  await sandbox.kill()
}
