/** The configuration over time against a model of it, with power cuts between any two writes. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { ConfigState } from '../../../src/os/config/config-state.ts'
import { ConfigHistory } from '../../../src/os/config/history/history.ts'
import { statePath } from '../../../src/os/config/keep.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { digest, trialPath } from '../../../src/os/config/trial/marker.ts'
import { type Step, type TrialState, transition } from '../../../src/os/config/trial/state.ts'
import { runs } from '../../support/runs.ts'
import { machineInMemory } from './machine.ts'

const texts = ['0', '1', '2', '3'].map((value) => `machine: {sysctls: {a.b: "${value}"}}\ncluster: {}\n`)
const numberOf = (text: string | undefined) => (text === undefined ? undefined : texts.indexOf(text))

class PowerCut extends Error {}

/** A machine whose disk stops taking writes after so many. */
class Subject {
  disk = new Map([[statePath, texts[0]!]])
  writes = Number.POSITIVE_INFINITY
  now = 0
  state!: ConfigState
  store!: ReturnType<typeof machineInMemory>['store']

  async start(): Promise<void> {
    const { machine, store } = machineInMemory()
    this.writes = Number.POSITIVE_INFINITY
    const write = (act: () => void) => async () => {
      if (this.writes-- <= 0) throw new PowerCut()
      act()
    }
    const files = {
      readTextIfThere: (path: string) => this.disk.get(path),
      writeAtomic: (path: string, text: string) => write(() => this.disk.set(path, text))(),
      remove: (path: string) => write(() => this.disk.delete(path))(),
    } as never
    this.store = store
    this.state = new ConfigState({ ...machine, kernel: { files } }, new ConfigHistory(files, machine.log), () => this.now)
    await this.state.restart()
    this.state.found(this.disk.get(statePath)!)
  }

  seen() {
    const spec = (id: string) => numberOf(this.store.get(MachineConfig, id)?.spec)
    return { file: numberOf(this.disk.get(statePath)), persistent: spec('persistent'), inForce: spec('v1alpha1'), state: this.state.state }
  }
}

/** What should be, by numbers of texts. */
interface Model {
  readonly stays: number
  readonly trial?: { readonly kind: Exclude<TrialState, 'none'>; readonly text: number }
  readonly deferred: boolean
}

const kinds = { applyTry: 'try', applyConfirm: 'confirm', applyConnectivity: 'connectivity' } as const

const applied = (model: Model, step: Step, text: number, deferred: boolean): Model =>
  step === 'apply'
    ? { stays: text, deferred }
    : { stays: model.stays, trial: { kind: kinds[step as keyof typeof kinds], text }, deferred: deferred || model.deferred }

const ended = ({ stays, deferred }: Model): Model => ({ stays, deferred })
const restarted = (model: Model): Model => (model.trial?.kind === 'try' ? ended : (same: Model) => same)({ ...model, deferred: false })

const apply = fc.record({
  do: fc.constantFrom<Step>('apply', 'applyTry', 'applyConfirm', 'applyConnectivity'),
  text: fc.integer({ min: 0, max: texts.length - 1 }),
  deferred: fc.boolean(),
})
const other = fc.record({ do: fc.constantFrom<Step>('confirm', 'expire', 'restart') })
const commands = fc.array(
  fc.record({ command: fc.oneof(apply, other), cut: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined, freq: 3 }) }),
  { minLength: 1, maxLength: 12 },
)

async function act(subject: Subject, command: { do: Step; text?: number; deferred?: boolean }): Promise<void> {
  const { state } = subject
  if (command.do === 'restart') return subject.start()
  if (command.do === 'confirm') return state.state === 'none' ? undefined : state.step('confirm')
  if (command.do === 'expire') {
    subject.now += 10_000_000
    await state.tick()
    return
  }
  const text = texts[command.text!]!
  const kind = kinds[command.do as keyof typeof kinds]
  const deferred = command.do !== 'applyTry' && command.deferred === true
  const entry = await state.history.add({
    time: '',
    mode: 'auto',
    by: { roles: [], peer: '', actor: '' },
    text,
    outcome: kind && 'pending',
  })
  const time = { within: 60_000, left: 60_000, reboot: false, waits: false, targets: [] }
  await state.step(command.do, {
    text,
    deferred,
    trial: kind && { kind, before: state.stays!, after: digest(text), entry, ...time },
  })
}

function expected(model: Model, command: { do: Step; text?: number; deferred?: boolean }): Model {
  if (command.do === 'restart') return restarted(model)
  if (command.do === 'expire') return ended(model)
  if (command.do === 'confirm') return model.trial ? { stays: model.trial.text, deferred: model.deferred } : model
  return applied(model, command.do, command.text!, command.do !== 'applyTry' && command.deferred === true)
}

/** The file and the kept configuration are those of the model; the one in force too, unless it waits for a start. */
function check(subject: Subject, { stays, trial, deferred }: Model): void {
  const kept = trial && trial.kind !== 'try' ? trial.text : stays
  const { inForce, ...rest } = subject.seen()
  expect(rest).toEqual({ file: kept, persistent: kept, state: trial?.kind ?? 'none' })
  if (!deferred) expect(inForce).toBe(trial?.text ?? stays)
}

test('after all trials the file and both resources are the last configuration meant to stay', async () => {
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const subject = new Subject()
      await subject.start()
      let model: Model = { stays: 0, deferred: false }
      for (const { command, cut } of sequence) {
        const next = expected(model, command)
        if (cut === undefined || command.do === 'restart') {
          await act(subject, command)
          model = next
        } else {
          subject.writes = cut
          const done = await act(subject, command).then(
            () => true,
            (error) => {
              if (!(error instanceof PowerCut)) throw error
              return false
            },
          )
          await subject.start()
          // What was answered holds; what was cut off either happened or did not.
          const outcomes = (done ? [next] : [model, next]).map(restarted)
          const { file, state } = subject.seen()
          const kept = ({ trial, stays }: Model) => (trial && trial.kind !== 'try' ? trial.text : stays)
          const outcome = outcomes.find((each) => kept(each) === file && (each.trial?.kind ?? 'none') === state)
          // The trial before may also be over, where the new one's marker was written and its configuration was not.
          model = outcome ?? ended(restarted(model))
        }
        check(subject, model)
      }
      await act(subject, { do: 'expire' })
      model = ended(model)
      check(subject, model)
      await subject.start()
      check(subject, { ...model, deferred: false })
      expect(subject.disk.has(trialPath)).toBe(false)
      expect(subject.state.history.list().filter(({ outcome }) => outcome === 'pending')).toEqual([])
    }),
    { numRuns: runs(100), seed: 20261121 },
  )
})

test('a try after a configuration that waits to be confirmed leaves neither behind', async () => {
  const subject = new Subject()
  await subject.start()
  await act(subject, { do: 'applyConfirm', text: 1 })
  await act(subject, { do: 'applyTry', text: 2 })
  expect(subject.seen()).toEqual({ file: 0, persistent: 0, inForce: 2, state: 'try' })
  await act(subject, { do: 'expire' })
  expect(subject.seen()).toEqual({ file: 0, persistent: 0, inForce: 0, state: 'none' })
  await subject.start()
  expect(subject.seen()).toEqual({ file: 0, persistent: 0, inForce: 0, state: 'none' })
})

test('a write that fails leaves the trial before it as it was', async () => {
  for (let cut = 1; cut < 4; cut++) {
    const subject = new Subject()
    await subject.start()
    await act(subject, { do: 'applyConfirm', text: 1 })
    subject.writes = cut
    const failed = act(subject, { do: 'apply', text: 2 }).catch(() => {})
    await failed
    subject.writes = Number.POSITIVE_INFINITY
    expect(subject.seen()).toMatchObject({ persistent: 1, inForce: 1, state: 'confirm' })
    await act(subject, { do: 'expire' })
    expect(subject.seen()).toEqual({ file: 0, persistent: 0, inForce: 0, state: 'none' })
  }
})

test('every trial can be confirmed, expire and be replaced', () => {
  for (const state of ['try', 'confirm', 'connectivity'] as const)
    for (const step of ['apply', 'applyTry', 'applyConfirm', 'applyConnectivity', 'confirm', 'expire', 'restart'] as const)
      expect(transition(state, step)).toBeDefined()
  expect([transition('none', 'confirm'), transition('none', 'expire')]).toEqual([undefined, undefined])
})

test('a marker of a release that went by the wall clock is read, and its time begins again', async () => {
  const subject = new Subject()
  const marker = { kind: 'confirm', before: texts[0], after: digest(texts[1]!), since: 0, within: 60_000, entry: 0, reboot: false }
  subject.disk.set(statePath, texts[1]!).set(trialPath, JSON.stringify(marker))
  await subject.start()
  expect(subject.seen()).toMatchObject({ file: 1, state: 'confirm' })
  expect(subject.state.left()).toBe(57_000)
  await act(subject, { do: 'expire' })
  expect(subject.seen()).toEqual({ file: 0, persistent: 0, inForce: 0, state: 'none' })
})
