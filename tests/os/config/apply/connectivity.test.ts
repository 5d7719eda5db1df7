/** Changes that may cut a machine off stay only where somebody still reaches it. */
import { afterEach, describe, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { makeClock } from '../../../../src/cosi/clock.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Member } from '../../../../src/os/cluster/resources/member.ts'
import { observeCalls } from '../../../../src/os/config/api/reached.ts'
import { ConfigApply } from '../../../../src/os/config/apply/config-apply.ts'
import { admits, type Risk, reachTargets, riskOf } from '../../../../src/os/config/apply/reach.ts'
import { ConfigContainer } from '../../../../src/os/config/container.ts'
import { observeConnectivity } from '../../../../src/os/config/controllers/connectivity.ts'
import { changesBetween } from '../../../../src/os/config/history/changes.ts'
import { statePath } from '../../../../src/os/config/keep.ts'
import { answers, type Probe } from '../../../../src/os/config/probe.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { ResolverStatus } from '../../../../src/os/network/resources/resolver.ts'
import { newCA, type PemPair, signedBy, toBase64 } from '../../../../src/pki/certificate.ts'
import { config, machineInMemory } from '../machine.ts'

const first = config('worker')
const link = (address: string) => `---\napiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\naddresses: [{address: ${address}}]\n`
const moved = `${first}${link('10.9.0.2/24')}`
const by = { roles: ['os:admin'], peer: '10.0.0.9', actor: 'admin' }

const running: Runtime[] = []
afterEach(() => {
  for (const runtime of running.splice(0)) runtime.stop()
})

/** A configured machine, the others that answer it, and its time. */
function machine(there: ReadonlySet<string> = new Set(), kept: Record<string, string> = {}) {
  const { machine: parts, store, disk, runtime } = machineInMemory({ [statePath]: first, ...kept })
  running.push(runtime)
  store.put(MachineConfig, 'v1alpha1', first)
  store.put(MachineConfig, 'persistent', first)
  const time = { passed: 0 }
  const probed: string[] = []
  const probe = async ({ host, port }: { host: string; port: number }) => {
    probed.push(`${host}:${port}`)
    return there.has(host)
  }
  const service = new ConfigApply(parts, { elapsed: () => time.passed, probe })
  const active = () => store.get(MachineConfig, 'v1alpha1')?.spec
  const pass = async (seconds: number) => {
    time.passed += seconds * 1000
    await service.tick()
  }
  const call = observeCalls(service, parts.log)
  /** A call through apid over a connection that has been open for so many seconds. */
  const called = async (age: number, status: 'OK' | 'PermissionDenied' = 'OK', authority = '') => {
    const metadata = {
      'ichor-caller-address': ['10.0.0.9'],
      'ichor-connection-age': [String(age * 1000)],
      'ichor-caller-authority': [authority],
    }
    call({ method: {} as never, roles: new Set(['os:reader']), metadata, peer: 'unix' }, status, 1)
    await service.state.inTurn(async () => {})
  }
  const outcome = (id: number) => service.history.get(id)
  return { store, disk, runtime, parts, service, time, probed, active, pass, called, outcome }
}

const outside = { by, from: '10.0.0.9' }

describe('a change of the network that is applied from outside', () => {
  test('is reverted when no client reaches the machine within a minute, and the history records it', async () => {
    const { service, active, disk, pass, outcome } = machine()
    const { id, details, reachWithin } = await service.apply(moved, 'auto', outside)
    expect([details, reachWithin]).toEqual(['Applied configuration without a reboot, reverted in 60s unless the node is reached', 60_000])
    expect([active(), disk.get(statePath)]).toEqual([moved, moved])
    await pass(59)
    expect(active()).toBe(moved)
    await pass(2)
    expect([active(), disk.get(statePath)]).toEqual([first, first])
    expect(outcome(id)).toMatchObject({ outcome: 'reverted', reason: 'the machine was not reached after it' })
  })

  test('stays when an authenticated call arrives over a connection made after it was in force', async () => {
    const { service, active, pass, called, outcome } = machine()
    const { id } = await service.apply(moved, 'auto', outside)
    await called(100)
    await pass(10)
    await called(11)
    await called(9)
    await called(2, 'PermissionDenied')
    expect(service.state.state).toBe('connectivity')
    await called(2)
    expect([service.state.state, outcome(id)?.outcome]).toEqual(['none', 'confirmed'])
    await pass(1000)
    expect(active()).toBe(moved)
  })

  test('is confirmed by its caller over a new connection, and not over the old one', async () => {
    const { service, pass } = machine()
    const { id } = await service.apply(moved, 'auto', { ...outside, reconnects: true })
    await expect(service.confirm(1000)).rejects.toThrow('older than the change')
    await pass(5)
    await expect(service.confirm(5000)).rejects.toThrow('older than the change')
    expect(await service.confirm(1000)).toBe(id)
  })

  test('outlives a restart in between, and is put to the test only after the one it waits for', async () => {
    const { service, disk, pass } = machine()
    expect((await service.apply(moved, 'reboot', outside)).details).toBe(
      'Applied configuration with a reboot, reverted in 180s unless the node is reached after the reboot',
    )
    await pass(3600)
    expect([service.state.state, disk.get(statePath)]).toEqual(['connectivity', moved])
    const next = machine(new Set(), Object.fromEntries(disk))
    await next.service.state.restart()
    next.service.state.found(moved)
    await next.pass(179)
    expect([next.service.state.state, next.active()]).toEqual(['connectivity', moved])
    await next.pass(2)
    expect([next.service.state.state, next.active(), next.disk.get(statePath)]).toEqual(['none', first, first])
  })

  test('is not tried with --no-confirm, from the machine itself, as a try or where it waits to be confirmed anyway', async () => {
    for (const [options, kind] of [
      [{ ...outside, noConfirm: true }, 'none'],
      [{ by }, 'none'],
      [{ ...outside, confirmWithin: 100_000 }, 'confirm'],
    ] as const) {
      const { service } = machine()
      await service.apply(moved, 'auto', options)
      expect(service.state.state).toBe(kind)
    }
    const { service } = machine()
    await service.apply(moved, 'try', outside)
    expect(service.state.state).toBe('try')
  })
})

describe('a configuration that is applied during a trial', () => {
  const labelled = (text: string) => text.replace('machine:\n', 'machine:\n  nodeLabels: {a: b}\n')

  test('is tried too while it holds the change on trial: the machine goes back to what was meant to stay', async () => {
    const { service, active, disk, pass, outcome } = machine()
    await service.apply(moved, 'auto', outside)
    await pass(30)
    // The connection of before still stands, whatever became of the way to the machine.
    const { id } = await service.apply(labelled(moved), 'auto', { ...outside, age: 40_000 })
    expect([active(), service.state.state, service.state.stays]).toEqual([labelled(moved), 'connectivity', first])
    await pass(61)
    expect([active(), disk.get(statePath), outcome(id)?.outcome]).toEqual([first, first, 'reverted'])
  })

  test('applied permanently after a try is on trial, too', async () => {
    const { service, active, pass } = machine()
    await service.apply(moved, 'try', outside)
    await service.apply(moved, 'auto', outside)
    expect(service.state.state).toBe('connectivity')
    await pass(61)
    expect(active()).toBe(first)
  })

  test('stays where it takes the change on trial back, or where the operator requests it', async () => {
    for (const [text, options] of [
      [labelled(first), outside],
      [labelled(moved), { ...outside, noConfirm: true }],
    ] as const) {
      const { service, active, pass } = machine()
      await service.apply(moved, 'auto', outside)
      await service.apply(text, 'auto', options)
      expect(service.state.state).toBe('none')
      await pass(1000)
      expect(active()).toBe(text)
    }
  })

  test('over a connection made after the change shows that the machine is reached', async () => {
    const { service, active, pass, outcome } = machine()
    const { id } = await service.apply(moved, 'auto', outside)
    await pass(10)
    await service.apply(labelled(moved), 'auto', { ...outside, age: 1000 })
    expect([service.state.state, outcome(id)?.outcome]).toEqual(['none', 'confirmed'])
    await pass(1000)
    expect(active()).toBe(labelled(moved))
  })

  test('goes back with a reboot where the change before it took one', async () => {
    const { service, disk } = machine()
    const file = '  files: [{path: /var/a, content: a, op: create, permissions: 0o644}]\n'
    const both = moved.replace('machine:\n', `machine:\n${file}`)
    await service.apply(both, 'reboot', outside)
    const next = machine(new Set(), Object.fromEntries(disk))
    await next.service.state.restart()
    next.service.state.found(both)
    await next.service.apply(labelled(both), 'auto', outside)
    expect(next.service.state.trial).toMatchObject({ reboot: true, waits: false })
  })

  test('remembers who answered before the trial', async () => {
    const there = new Set(['10.0.0.9'])
    const { service } = machine(there)
    await service.apply(moved, 'auto', outside)
    there.clear()
    await service.apply(labelled(moved), 'auto', outside)
    expect(service.state.trial?.targets.map(({ host }) => host)).toEqual(['10.0.0.9'])
  })
})

describe('a rotation of authorities by a client that keeps its connection', () => {
  const authorities = ['old', 'new'].map((commonName) => newCA({ subject: { commonName }, kind: 'ecdsa' })) as [PemPair, PemPair]
  const [old, next] = authorities.map(({ crt, key }) => ({ crt: toBase64(crt), key: toBase64(key) })) as [PemPair, PemPair]
  const [ofOld, ofNew] = authorities.map(({ crt }) => new X509Certificate(crt).fingerprint256) as [string, string]
  const of = (ca: PemPair, accepted?: PemPair, certSANs: readonly string[] = []) => {
    const machine = { ca, certSANs, ...(accepted && { acceptedCAs: [{ crt: accepted.crt }] }) }
    return config('controlplane', JSON.stringify({ machine }))
  }
  const [before, accepting, swapped, dropped] = [of(old), of(old, next), of(next, old), of(next)]

  /** A machine that knows no other member, and the authority its own API serves with a certificate of. */
  async function alone(text = accepting) {
    const made = machine(new Set(['127.0.0.1']), { [statePath]: text })
    const { store, service, parts, time } = made
    for (const id of ['v1alpha1', 'persistent']) store.put(MachineConfig, id, text)
    const serving = { authority: authorities[0] }
    const clock = makeClock({
      elapsed: () => time.passed,
      sleep: async (ms) => {
        time.passed += ms
        await new Promise(setImmediate)
      },
    })
    const runtime = new Runtime(store, { log: parts.log, clock })
    running.push(runtime)
    const own = async ({ host, port, authorities: trusted }: Probe) => {
      expect(`${host}:${port}`).toBe('127.0.0.1:50000')
      return trusted?.some((pem) => signedBy(serving.authority.crt, pem)) ?? false
    }
    runtime.register(observeConnectivity(service, own))
    runtime.start()
    const settled = async () => {
      for (let turn = 0; turn < 500 && service.state.state !== 'none'; turn++) {
        await new Promise(setImmediate)
        await service.tick()
      }
    }
    return { ...made, serving, settled }
  }

  test('stays on a machine alone: a client of the new authority is let in, and the machine serves with it', async () => {
    const { service, active, serving, called, settled, outcome } = await alone()
    const swap = await service.apply(swapped, 'no-reboot', { ...outside, age: 1_000_000 })
    serving.authority = authorities[1]
    await called(1000, 'OK', ofNew)
    const drop = await service.apply(dropped, 'no-reboot', { ...outside, age: 1_000_000 })
    expect(service.state.stays).toBe(accepting)
    await called(1000, 'OK', ofNew)
    await settled()
    expect([active(), outcome(swap.id)?.reason, outcome(drop.id)?.outcome]).toEqual([dropped, 'another one was applied', 'confirmed'])
  })

  test('is reverted where the machine does not come to serve with the new authority', async () => {
    const { service, active, called, settled } = await alone()
    await service.apply(swapped, 'no-reboot', outside)
    await called(1000, 'OK', ofNew)
    await settled()
    expect(active()).toBe(accepting)
  })

  test('is reverted where only clients of the authority before are seen, who would not accept the machine', async () => {
    const { service, active, serving, called, settled } = await alone()
    await service.apply(swapped, 'no-reboot', outside)
    serving.authority = authorities[1]
    await called(1000, 'OK', ofOld)
    await called(1000, 'PermissionDenied', ofNew)
    await settled()
    expect(active()).toBe(accepting)
  })

  test('an authority that is dropped is not shown to be needless by its own clients', async () => {
    const { service, active, called, settled } = await alone()
    await service.apply(before, 'no-reboot', outside)
    await called(1000, 'OK', ofNew)
    await settled()
    expect(active()).toBe(accepting)
    await service.apply(before, 'no-reboot', outside)
    await called(1000, 'OK', ofOld)
    await settled()
    expect(active()).toBe(before)
  })

  test('shows nothing where the way to the machine changes too, or the names it is called by', async () => {
    for (const text of [`${of(next, old, ['a', 'b'])}${link('10.9.0.2/24')}`, of(next, old, ['b'])]) {
      const { service, active, serving, called, settled } = await alone(of(old, next, ['a', 'b']))
      const stays = active()
      await service.apply(text, 'no-reboot', outside)
      serving.authority = authorities[1]
      await called(1000, 'OK', ofNew)
      await settled()
      expect(active()).toBe(stays)
    }
  })
})

test('a machine that has nothing to go back to tries nothing', async () => {
  const { machine: parts, disk, runtime } = machineInMemory()
  running.push(runtime)
  const service = new ConfigApply(parts)
  await service.apply(moved, 'auto', outside)
  expect([service.state.state, disk.get(statePath)]).toEqual(['none', moved])
})

describe('where the caller does not come back by itself', () => {
  test('peers that answered before are probed, and none where the caller is on the same network', async () => {
    const one = machine(new Set(['10.0.0.9', '10.0.0.53']))
    one.store.put(ResolverStatus, 'resolvers', { dnsServers: ['10.0.0.53'], searchDomains: [] })
    one.store.put(Member, 'cp', {
      nodeId: 'cp',
      hostname: 'cp',
      addresses: ['10.0.0.1'],
      machineType: 'controlplane',
      operatingSystem: '',
    })
    await one.service.apply(moved, 'auto', outside)
    expect(one.probed).toEqual(['10.0.0.9:50000', '10.0.0.1:6443', '10.0.0.1:50000', '10.0.0.53:53'])
    expect(one.service.state.trial?.targets.map(({ host }) => host)).toEqual(['10.0.0.9', '10.0.0.53'])
    const two = machine(new Set(['10.0.0.9']))
    await two.service.apply(moved, 'auto', { ...outside, reconnects: true })
    expect([two.probed, two.service.state.trial?.targets]).toEqual([[], []])
  })

  test('one answer after the change is enough', async () => {
    const { service, store, time, outcome, parts } = machine(new Set(['10.0.0.9']))
    const clock = makeClock({
      elapsed: () => time.passed,
      sleep: async (ms) => {
        time.passed += ms
        await Promise.resolve()
      },
    })
    const runtime = new Runtime(store, { log: parts.log, clock })
    running.push(runtime)
    runtime.register(observeConnectivity(service, async () => time.passed > 10_000))
    runtime.start()
    const { id } = await service.apply(moved, 'auto', outside)
    for (let turn = 0; turn < 1000 && service.state.state !== 'none'; turn++) await new Promise(setImmediate)
    expect(outcome(id)?.outcome).toBe('confirmed')
  })

  test('a refusal is an answer, and a certificate of another authority is none', async () => {
    const [made, other] = ['a', 'b'].map((commonName) => newCA({ subject: { commonName }, kind: 'ecdsa' })) as [PemPair, PemPair]
    const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} }, tls: { cert: made.crt, key: made.key } })
    const at = { host: '127.0.0.1', port: listener.port }
    expect(await answers(at, 2000)).toBe(true)
    expect(await answers({ ...at, authorities: [made.crt] }, 2000)).toBe(true)
    expect(await answers({ ...at, authorities: [other.crt] }, 2000)).toBe(false)
    listener.stop(true)
    expect(await answers(at, 2000)).toBe(true)
    expect(await answers({ ...at, authorities: [made.crt] }, 2000)).toBe(false)
  })
})

describe('at risk', () => {
  const nothing: Risk = { network: false, firewall: false, authority: false, names: false }
  const risk = (before: string, patch: string) => {
    const config = ConfigContainer.parse(before)
    return riskOf(changesBetween(config, config.patch(patch)))
  }
  const crt = ConfigContainer.parse(first).v1alpha1!.machine!.ca!.crt!

  test('is the way to the machine by its network, firewall and authorities', () => {
    const of = (...kinds: (keyof Risk)[]) => ({ ...nothing, ...Object.fromEntries(kinds.map((kind) => [kind, true])) })
    expect(risk(first, 'machine: {network: {nameservers: [1.1.1.1]}}')).toEqual(of('network'))
    expect(risk(first, 'apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: block')).toEqual(of('firewall'))
    expect(risk(first, `machine: {ca: {crt: ${crt.slice(0, -8)}AAAAAAA=}}`)).toEqual(of('authority'))
    const accepting = config('worker', `machine: {acceptedCAs: [{crt: ${crt}}]}`)
    expect(risk(accepting, '- {op: remove, path: /machine/acceptedCAs}')).toEqual(of('authority'))
    expect(risk(config('worker', 'machine: {certSANs: [a]}'), '- {op: remove, path: /machine/certSANs}')).toEqual(of('names'))
  })

  test('is nothing by more trust, more names, or what is not about the way', () => {
    expect(risk(first, `machine: {acceptedCAs: [{crt: ${crt}}], certSANs: [b]}`)).toBeUndefined()
    expect(risk(first, 'machine: {nodeLabels: {a: b}, sysctls: {a.b: "1"}}\ncluster: {clusterName: y}')).toBeUndefined()
  })

  test('a firewall that keeps the caller out leaves nobody to ask', () => {
    const rule = (subnet: string, ports = '50000') =>
      `---\napiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: api\nportSelector: {ports: [${ports}], protocol: tcp}\ningress: [{subnet: ${subnet}}]\n`
    const block = '---\napiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: block\n'
    const of = (text: string) => ConfigContainer.parse(`${first}${text}`)
    expect(
      [block, block + rule('10.0.0.0/24'), block + rule('10.1.0.0/24'), rule('10.0.0.0/24'), rule('10.1.0.0/24'), ''].map((text) =>
        admits(of(text), '10.0.0.9', 50_000),
      ),
    ).toEqual([false, true, false, true, false, true])
    const { store } = machine()
    expect(reachTargets({ ...nothing, firewall: true }, of(block), '10.0.0.9', store)).toEqual([])
    expect(reachTargets({ ...nothing, firewall: true }, of(block + rule('10.0.0.0/24')), '10.0.0.9', store).length).toBeGreaterThan(0)
  })
})
