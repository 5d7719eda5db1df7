import { expect, test } from 'bun:test'
import { serviceGuard, setServiceGuard } from '../../../src/os/k8s/service-guard.ts'
import type { Command, Spawn } from '../../../src/supervise/spawn.ts'

test('what nobody translated is dropped, one rule a family, the table replaced as one', () => {
  const script = serviceGuard(['10.96.0.0/12', 'fd00:1::/112', '10.112.0.0/16'])
  expect(script.split('\n').slice(0, 2)).toEqual(['table inet ichor-services', 'delete table inet ichor-services'])
  expect(script).toContain('iifname "cni0" ip daddr { 10.96.0.0/12, 10.112.0.0/16 } drop')
  expect(script).toContain('iifname "cni0" ip6 daddr { fd00:1::/112 } drop')
  expect(serviceGuard(['10.96.0.0/12'])).not.toContain('ip6')
})

test('nft gets the script; its output when it refuses is the error', async () => {
  const commands: Command[] = []
  const spawn =
    (code: number, text: string): Spawn =>
    (command) => {
      commands.push(command)
      const output = [new Response(text).body!]
      return { pid: 1, output, exited: Promise.resolve({ code, signal: null }), kill: () => {} }
    }
  const script = serviceGuard(['10.96.0.0/12'])
  await setServiceGuard(spawn(0, ''), script)
  expect(commands[0]?.argv).toEqual(['/usr/sbin/nft', script])
  await expect(setServiceGuard(spawn(1, 'Error: no such thing\nmore'), script)).rejects.toThrow(
    'set rules for services: nft: exit code 1: Error: no such thing',
  )
})
