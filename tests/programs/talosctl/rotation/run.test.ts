import { expect, test } from 'bun:test'
import type { ConfigContainer } from '../../../../src/os/config/container.ts'
import { advance, fingerprintOf, stageOf } from '../../../../src/programs/talosctl/rotation/authority.ts'
import { type AuthorityRound, authorityRounds } from '../../../../src/programs/talosctl/rotation/rounds.ts'
import { planRounds, type RotationSteps, RotationStopped, runRounds } from '../../../../src/programs/talosctl/rotation/run.ts'
import { cluster, newAuthority, secrets } from './machines.ts'

const old = secrets.certs.os

/** Fails unless each machine accepts what each other one issues. */
function checkTrust(machines: ReadonlyMap<string, ConfigContainer>): void {
  const parts = [...machines.values()].map((config) => config.v1alpha1?.machine ?? {})
  const accepted = parts.map(({ ca, acceptedCAs = [] }) => [ca?.crt, ...acceptedCAs.map(({ crt }) => crt)])
  for (const { ca } of parts) for (const list of accepted) expect(list).toContain(ca?.crt)
}

/** Steps on machines in memory. `interrupt` is called before each change and each proof. */
function stepsOf(machines: Map<string, ConfigContainer>, next = newAuthority(), interrupt: (what: string) => void = () => {}) {
  const done: string[] = []
  const steps: RotationSteps<AuthorityRound> = {
    subject: 'machine API',
    nodes: [...machines.keys()],
    read: async (node) => machines.get(node)!,
    stageOf: (config) => stageOf(config, 'machine', { old, next }),
    advance: (config, stage) => advance(config, 'machine', { old, next }, stage),
    async apply(node, config, { stage }) {
      interrupt(`${stage} ${node}`)
      machines.set(node, config)
      checkTrust(machines)
      done.push(`${stage} ${node}`)
    },
    async prove({ stage }) {
      interrupt(`${stage} proof`)
      done.push(`${stage} proof`)
    },
    report: () => {},
  }
  return { steps, done, next }
}

const everything = [1, 2, 3].flatMap((stage) => ['first', 'second', 'worker', 'proof'].map((what) => `${stage} ${what}`))

test('each node is changed in turn, and each round is proven before the next', async () => {
  const { steps, done } = stepsOf(cluster())
  await runRounds(authorityRounds, steps)
  expect(done).toEqual(everything)
})

test.each(everything)('a rotation that is interrupted at "%s" continues there with the same new authority', async (at) => {
  const machines = cluster()
  const { steps, done, next } = stepsOf(machines, newAuthority(), (what) => {
    if (what === at) throw new Error('interrupted')
  })
  await expect(runRounds(authorityRounds, steps)).rejects.toThrow(RotationStopped)
  expect(done).toEqual(everything.slice(0, everything.indexOf(at)))
  const again = stepsOf(machines, next)
  await runRounds(authorityRounds, again.steps)
  // What was changed is not changed again; the round that all nodes have reached is proven again.
  const proven = /^[23] first$/.test(at) ? everything.indexOf(at) - 1 : everything.indexOf(at)
  expect(again.done).toEqual(everything.slice(proven))
  for (const { v1alpha1 } of machines.values()) {
    expect(fingerprintOf(v1alpha1?.machine?.ca?.crt ?? '')).toBe(fingerprintOf(next.crt))
    expect(v1alpha1?.machine?.acceptedCAs).toBeUndefined()
  }
})

test('a node that joined with the old configuration in between is brought to where the others are', async () => {
  const machines = cluster()
  const { steps, next } = stepsOf(machines, newAuthority(), (what) => {
    if (what === '3 first') throw new Error('interrupted')
  })
  await expect(runRounds(authorityRounds, steps)).rejects.toThrow(RotationStopped)
  machines.set('late', cluster().get('worker')!)
  const again = stepsOf(machines, next)
  // Every node still accepts the old authority, with which the late one issues nothing.
  await runRounds(authorityRounds, { ...again.steps, apply: async (node, config) => void machines.set(node, config) })
  for (const config of machines.values()) expect(again.steps.stageOf(config)).toBe(3)
})

test('the error names the round, the cause, and what to do', async () => {
  const { steps } = stepsOf(cluster(), newAuthority(), (what) => {
    if (what === '2 proof') throw new Error('worker: no answer')
  })
  await expect(runRounds(authorityRounds, steps)).rejects.toThrow(
    'machine API: issue with the new authority: worker: no answer\nrun the same command again: it continues from here',
  )
})

test('the plan names the nodes that each round has left to change', async () => {
  const machines = cluster()
  const { steps, next } = stepsOf(machines, newAuthority(), (what) => {
    if (what === '1 worker') throw new Error('interrupted')
  })
  await expect(runRounds(authorityRounds, steps)).rejects.toThrow(RotationStopped)
  expect(await planRounds(authorityRounds, stepsOf(machines, next).steps)).toEqual([
    '1. accept the new authority: worker',
    '2. issue with the new authority: first, second, worker',
    '3. drop the old authority: first, second, worker',
  ])
})
