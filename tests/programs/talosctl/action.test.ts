import { expect, test } from 'bun:test'
import { packAny } from '../../../src/rpc/client/any.ts'
import { type Method, serverStream, unary } from '../../../src/rpc/server/method.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import { node, talosctl } from './peer.ts'

const admins = ['os:admin'] as const

/** A node whose life is a list of what its status is each time it is looked at; undefined is no answer. */
function living(lives: ([began: number, stage: string] | undefined)[], calls: unknown[] = []): Method[] {
  return [
    unary('machine.MachineService/Reboot', admins, (request) => {
      calls.push(request)
      return { messages: [{ actorId: 'me' }] }
    }),
    unary('machine.MachineService/Shutdown', admins, (request) => {
      calls.push(request)
      return { messages: [{ actorId: 'me' }] }
    }),
    unary('machine.MachineService/Reset', admins, (request) => {
      calls.push(request)
      return { messages: [{ actorId: 'me' }] }
    }),
    serverStream('machine.MachineService/Events', admins, async function* ({ withActorId }) {
      if (withActorId !== 'me') throw new RpcError('InvalidArgument', 'whose?')
      const data = packAny('machine.PhaseEvent', { phase: 'stopEverything', action: 0 }, 'talos/runtime/')
      yield { id: '1', actorId: 'me', data }
    }),
    unary('cosi.resource.State/Get', admins, () => {
      const life = lives.length > 1 ? lives.shift() : lives[0]
      if (!life) throw new RpcError('Unavailable', 'connect refused')
      const [seconds, stage] = life
      return { resource: { metadata: { id: 'machine', created: { seconds, nanos: 0 } }, spec: { yamlSpec: `stage: ${stage}\n` } } }
    }),
  ]
}

test('a reboot is followed until the node runs in a new life', async () => {
  const calls: unknown[] = []
  const lives: Parameters<typeof living>[0] = [[100, 'running'], [100, 'rebooting'], undefined, [200, 'booting'], [200, 'running']]
  const { code, stdout, stderr } = await talosctl(living(lives, calls), ['reboot', '-m', 'powercycle', '--timeout', '20s'])
  expect([code, stdout]).toEqual([0, ''])
  expect(calls).toEqual([{ mode: 1 }])
  const lines = stderr.trim().split('\n')
  expect(lines[0]).toBe(`${node}: waiting for events`)
  expect(lines).toContain(`${node}: stopEverything: START`)
  expect(lines.slice(-3)).toEqual([`${node}: booting`, `${node}: running`, `${node}: back and running`])
}, 20_000)

test('a reboot without waiting only starts it', async () => {
  expect(await talosctl(living([[100, 'running']]), ['reboot', '--wait=false'])).toEqual({ code: 0, stdout: '', stderr: '' })
})

test('a reset that the node gives up ends the wait at once, with the reason', async () => {
  const methods = living([[100, 'running']]).filter(({ path }) => !path.endsWith('/Events'))
  const failing = serverStream('machine.MachineService/Events', admins, async function* () {
    const event = { sequence: 'reset', action: 2, error: { message: 'task "leaveEtcd": etcd has no leader' } }
    yield { id: '1', actorId: 'me', data: packAny('machine.SequenceEvent', event, 'talos/runtime/') }
  })
  const { code, stderr } = await talosctl([...methods, failing], ['reset', '--timeout', '1h', '--progress', 'none'])
  const reason = 'sequence reset failed: task "leaveEtcd": etcd has no leader'
  expect([code, stderr]).toEqual([1, `1 error occurred:\n\t* ${node}: ${reason}\n`])
}, 20_000)

test('a shutdown that ends in a new life is a failure', async () => {
  const { code, stderr } = await talosctl(
    living([
      [100, 'running'],
      [200, 'booting'],
    ]),
    ['shutdown', '--force', '--progress', 'none'],
  )
  expect([code, stderr]).toEqual([1, `1 error occurred:\n\t* ${node}: it started again instead of staying down, stage "booting"\n`])
})

test('a timeout is reported with what was seen last', async () => {
  const { code, stderr } = await talosctl(living([[100, 'running']]), ['reboot', '--timeout', '1ms', '--progress', 'none'])
  expect(code).toBe(1)
  expect(stderr).toMatch(/no end within 0 s, last seen: (stopEverything: START|waiting for events)\n$/)
})

test('what a reset wipes follows the flags', async () => {
  const calls: unknown[] = []
  const args = [
    'reset',
    '--no-wait',
    '--graceful=false',
    '--reboot',
    '--system-labels-to-wipe',
    'STATE,EPHEMERAL',
    '--wipe-mode=system-disk',
  ]
  await talosctl(living([], calls), args)
  expect(calls).toEqual([
    {
      graceful: false,
      reboot: true,
      systemPartitionsToWipe: [
        { label: 'STATE', wipe: true },
        { label: 'EPHEMERAL', wipe: true },
      ],
      userDisksToWipe: [],
      mode: 1,
    },
  ])
  const { stderr } = await talosctl(living([]), ['reset', '--user-disks-to-wipe', '/dev/vdb', '--wipe-mode=system-disk'])
  expect(stderr).toBe('--user-disks-to-wipe does not go with --wipe-mode=system-disk\n')
})
