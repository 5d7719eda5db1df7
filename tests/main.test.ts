import { expect, test } from 'bun:test'
import { join } from 'node:path'

const main = join(import.meta.dir, '../src/main.ts')

test.each([
  ['an argument', ['nosuch'], process.execPath, 'no program "nosuch" in this binary: '],
  ['its own name', [], 'sh', 'no program "sh" in this binary: '],
] as [string, string[], string, string][])('a program unknown by %s gets the list of names', async (_, args, argv0, message) => {
  const child = Bun.spawn([process.execPath, main, ...args], { argv0, stdout: 'ignore', stderr: 'pipe' })
  const output = await new Response(child.stderr).text()
  expect(await child.exited).toBe(64)
  expect(output).toBe(
    `${message}call it by, or with, one of init, apid, trustd, metricsd, talosctl, exec, wireguard, etcd-verify, node-supervisor, dashboard, factory, discovery\n`,
  )
})
