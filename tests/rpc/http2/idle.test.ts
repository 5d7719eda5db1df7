import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { unary } from '../../../src/rpc/server/method.ts'
import { serveUnix } from '../../../src/rpc/server/server.ts'

test('an open connection does not keep a program running, a call does', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-idle-'))
  const path = join(folder, 'server')
  const methods = [
    unary('machine.MachineService/Hostname', 'anyone', async () => {
      await new Promise((resolve) => setTimeout(resolve, 100))
      return { messages: [{ hostname: 'late' }] }
    }),
  ]
  const server = await serveUnix({ path }, { methods, store: new Store(), log: silent })
  const program = `
    const { connect } = await import(${JSON.stringify(join(import.meta.dir, '../../../src/rpc/client/channel.ts'))})
    const channel = connect({ unix: ${JSON.stringify(path)} })
    for (let n = 0; n < 2; n++)
      channel.unary('machine.MachineService/Hostname', {}, { deadline: 0 }).then(({ messages }) => console.log(messages[0].hostname))`
  const child = Bun.spawn([process.execPath, '-e', program], { stdout: 'pipe', stderr: 'pipe' })
  expect(await new Response(child.stderr).text()).toBe('')
  expect(await new Response(child.stdout).text()).toBe('late\nlate\n')
  expect(await child.exited).toBe(0)
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})
