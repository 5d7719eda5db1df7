import { expect, test } from 'bun:test'
import { run } from '../../../src/programs/talosctl/talosctl.ts'
import { unary } from '../../../src/rpc/server/method.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import { node, talosctl, textIo } from './peer.ts'

async function alone(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const io = textIo({ env: { TALOSCONFIG: '/nonexistent/talosconfig' } })
  const code = await run(args, io)
  return { code, out: io.written.out, err: io.written.err }
}

test('an expired certificate is detected in the configuration itself when the server rejects it', async () => {
  const at = (now: string) => talosctl([], ['version', '--json'], { endpoints: ['127.0.0.1:1'], now: new Date(now) })
  const { code, stderr } = await at('2037-01-01T00:00:00Z')
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^the client certificate of context "test" in ".*" expired at 2036-11-18T00:00:00Z: get a new one with "talosctl config new" /,
  )
  expect((await at('2026-11-20T00:00:00Z')).stderr).toMatch(
    / is valid from 2026-11-2\dT.*Z on: is the clock of this computer, at 2026-11-20T00:00:00Z, right\?\n$/,
  )
  expect((await at('2026-11-22T00:00:00Z')).stderr).toStartWith('rpc error: code = Unavailable desc = connect to ')
})

test('a mistyped command is refused with the nearest one', async () => {
  const { code, out, err } = await alone('servce', 'apid')
  expect([code, out]).toEqual([1, ''])
  expect(err).toStartWith("unknown command 'servce'\n(Did you mean service?)\n")
})

test('a mistyped flag is refused with the nearest one', async () => {
  const { code, err } = await alone('get', 'members', '--namspace', 'x')
  expect(code).toBe(1)
  expect(err).toBe('unknown option \'--namspace\'\n(Did you mean --namespace?)\nrun "talosctl get --help" for its usage\n')
})

test('commands that are not there yet are absent', async () => {
  for (const name of ['upgrade', 'rollback', 'dashboard', 'conformance']) expect((await alone(name)).code).toBe(1)
})

test('help is on standard output and ends well', async () => {
  const { code, out, err } = await alone('--help')
  expect([code, err]).toEqual([0, ''])
  expect(out).toContain('  version ')
  expect(out).not.toContain('crashdump')
  expect((await alone('help', 'get')).out).toContain('Usage: talosctl get|g [options] <type> [id]')
  expect((await alone('etcd', 'snapshot', '-h')).out).toContain('Usage: talosctl etcd snapshot')
})

test('no command at all is a failure that shows the help', async () => {
  const { code, out, err } = await alone()
  expect([code, out]).toEqual([1, ''])
  expect(err).toContain('Usage: talosctl')
})

test('a missing argument and a wrong value are reported', async () => {
  expect((await alone('read')).err).toStartWith("missing required argument 'path'\n")
  expect((await alone('logs', 'x', '--tail', 'many')).err).toContain('want a whole number')
  expect((await alone('reboot', '--timeout', '5')).err).toContain('want a duration like "30s"')
  expect((await alone('reboot', '--mode', 'soft')).err).toContain('Allowed choices are default, powercycle, force')
})

test('a missing client configuration is reported with the searched paths', async () => {
  const { code, err } = await alone('memory')
  expect([code, err]).toEqual([
    1,
    'no client configuration at "/nonexistent/talosconfig": name one with --talosconfig or $TALOSCONFIG, or make one with "talosctl gen config"\n',
  ])
})

test('the version of the client needs no cluster', async () => {
  const { code, out, err } = await alone('version', '--client')
  expect([code, err]).toEqual([0, ''])
  expect(out).toMatch(/^Client:\n\tTag: {9}v1\.13\.\d+\n\tSHA: .*\n\tBuilt: .*\n\tGo version: .*\n\tOS\/Arch: {5}\w+\/\w+\n$/)
})

test('gone commands say what to use', async () => {
  const { code, err } = await alone('disks', '--whatever')
  expect(code).toBe(1)
  expect(err).toStartWith('"talosctl disks" is gone: use "talosctl get disks"')
})

const version = unary('machine.MachineService/Version', ['os:admin'], () => ({
  messages: [{ version: { tag: 'v1.13.0', sha: 'abc', goVersion: 'bun', os: 'linux', arch: 'amd64' }, features: { rbac: true } }],
}))

test('the version of every node is shown', async () => {
  const { code, stdout } = await talosctl([version], ['version', '-n', 'a', '--nodes', 'b,c'])
  expect(code).toBe(0)
  expect([...stdout.matchAll(/NODE: {8}(\w)/g)].map(([, name]) => name)).toEqual(['a', 'b', 'c'])
  expect(stdout).toContain('\tEnabled:     RBAC\n')
})

test('global flags may stand in front of the command', async () => {
  expect((await talosctl([version], ['-n', 'b', 'version'])).stdout).toContain('NODE:        b\n')
  expect((await talosctl([version], ['--nodes=b', 'version', '--short'])).stdout).toContain('Client:\nTalos v1.13.1')
})

test('without nodes the endpoint that answers is the one used', async () => {
  expect((await talosctl([version], ['version'], { nodes: [] })).stdout).toContain('NODE:        127.0.0.1\n')
})

test('version as JSON begins with who answers, and leaves out what is empty', async () => {
  const { stdout } = await talosctl([version], ['--nodes', 'b', 'version', '--json'])
  expect(stdout).toMatch(/^\{"metadata":\{"hostname":"b"\},"version":\{"tag":"v[^"]+"/)
  expect(stdout).not.toContain('""')
})

test('a dead endpoint is skipped', async () => {
  const { code, stdout } = await talosctl([version], ['version'], { endpoints: ['127.0.0.1:1', 'HERE'] })
  expect([code, stdout.includes(node)]).toEqual([0, true])
  const { code: none, stderr } = await talosctl([version], ['version'], { endpoints: ['127.0.0.1:1', '127.0.0.1:2'] })
  expect(none).toBe(1)
  expect(stderr).toMatch(/^no endpoint answers: 127\.0\.0\.1:[12]: ECONNREFUSED; 127\.0\.0\.1:[12]: ECONNREFUSED\n$/)
})

test('an endpoint that accepts and then does not speak TLS is skipped', async () => {
  const deaf = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: (socket) => void socket.end() } })
  try {
    const { code } = await talosctl([version], ['version'], { endpoints: [`127.0.0.1:${deaf.port}`, 'HERE'] })
    expect(code).toBe(0)
  } finally {
    deaf.stop(true)
  }
})

test('changes want to know the node, and say which it would be', async () => {
  for (const args of [['reboot'], ['service', 'apid', 'stop'], ['shutdown'], ['bootstrap']]) {
    const { code, stderr } = await talosctl([], args, { nodes: [] })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^nodes are not set for the command: .* would reach 127\.0\.0\.1; name it with --nodes or set "nodes" in "/)
  }
})

test('some nodes failing is a warning, all failing a failure', async () => {
  const failed = (hostname: string) => ({
    metadata: { hostname, error: 'x', status: { code: 9, message: 'method is not supported in container mode' } },
  })
  const some = unary('machine.MachineService/Memory', ['os:admin'], () => ({ messages: [failed('a'), { meminfo: {} }] }))
  const all = unary('machine.MachineService/Memory', ['os:admin'], () => ({ messages: [failed('a'), failed('b')] }))
  const text = 'a: rpc error: code = FailedPrecondition desc = method is not supported in container mode\n'
  const partly = await talosctl([some], ['memory'])
  expect([partly.code, partly.stderr]).toEqual([0, `WARNING: 1 error occurred:\n\t* ${text}`])
  expect(partly.stdout).toContain(node)
  const wholly = await talosctl([all], ['memory'])
  expect([wholly.code, wholly.stdout, wholly.stderr]).toEqual([1, '', `2 errors occurred:\n\t* ${text}\t* b${text.slice(1)}`])
})

test('a refused call keeps the shape scripts match on', async () => {
  const refusing = unary('machine.MachineService/Mounts', ['os:admin'], () => {
    throw new RpcError('PermissionDenied', 'not authorized')
  })
  expect((await talosctl([refusing], ['mounts'])).stderr).toBe('rpc error: code = PermissionDenied desc = not authorized\n')
})

test('completion knows commands, flags, choices and live values', async () => {
  const services = unary('machine.MachineService/ServiceList', ['os:admin'], () => ({
    messages: [{ services: [{ id: 'apid' }, { id: 'etcd' }] }],
  }))
  const completed = async (...words: string[]) =>
    (await talosctl([services], ['__complete', ...words])).stdout
      .split('\n')
      .map((line) => line.split('\t')[0])
      .filter(Boolean)
  expect(await completed('st')).toEqual(['stats'])
  expect(await completed('etcd', 's')).toEqual(['snapshot', 'status'])
  expect(await completed('get', '--w')).toEqual(['--watch'])
  expect(await completed('reboot', '--mode', '')).toEqual(['default', 'powercycle', 'force'])
  expect(await completed('reboot', '--mode=f')).toEqual(['--mode=force'])
  expect(await completed('-n', 'x', 'service', 'a')).toEqual(['apid'])
  expect(await completed('service', 'apid', 'st')).toEqual(['status', 'start', 'stop'])
  expect(await completed('--context', '')).toEqual(['test'])
  expect(await completed('nope', '')).toEqual([])
})
