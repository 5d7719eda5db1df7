/** The text of a dry run: the changes, what the controllers make of them, and the effects on the machine. */
import type { Controller, Input } from '../../../cosi/controller.ts'
import { type Consequence, rehearse } from '../../../cosi/rehearse.ts'
import type { Machine } from '../../area.ts'
import type { ConfigContainer } from '../container.ts'
import { changeText } from '../history/change-text.ts'
import type { Change } from '../history/changes.ts'
import { MachineConfig } from '../resources/machine-config.ts'
import type { ApplyMode } from './mode.ts'

type Dependencies = Pick<Machine, 'store' | 'runtime'>

/** A configuration that would be applied. */
export interface Rehearsal {
  readonly config: ConfigContainer
  readonly mode: ApplyMode
  /** How it differs from the one in force. */
  readonly changes: readonly Change[]
  /** Notes on when settings take effect. */
  readonly notes: readonly string[]
  /** Whether the caller may see the configuration in force. */
  readonly values: boolean
}

const manners: Readonly<Record<ApplyMode, string>> = {
  auto: 'without a reboot',
  'no-reboot': 'without a reboot',
  reboot: 'with a reboot',
  staged: 'after the next reboot',
  try: 'for a try, without a reboot',
}

/** What would happen if this configuration were applied. */
export async function dryRun({ store, runtime }: Dependencies, { config, mode, changes, notes, values }: Rehearsal): Promise<string> {
  const text = config.toString()
  const present = store.get(MachineConfig, 'v1alpha1')?.spec
  if (present === text) return 'Dry run: no changes.'
  if (present !== undefined && changes.length === 0) return 'Dry run: no changes but of comments, order and formatting.'
  const controllers = runtime.controllers().map(({ controller }) => controller)
  const consequences = await rehearse(store, controllers, [MachineConfig], (scratch) => {
    scratch.put(MachineConfig, 'v1alpha1', text)
  })
  return [
    `Dry run: the configuration would be applied ${manners[mode]}.`,
    ...notes,
    ...(values ? [changeText(changes)] : []),
    ...consequenceLines(consequences, controllers),
  ].join('\n')
}

function consequenceLines(consequences: readonly Consequence[], controllers: readonly Controller[]): string[] {
  if (consequences.length === 0)
    return [
      'What will happen: nothing that the running machine computes from its configuration changes; the rest is read at the next start.',
    ]
  const acting = consequences.filter(({ namespace }) => !/-(config|raw)$/.test(namespace))
  const steps = [...new Set(acting.flatMap(actsOn))]
  const readers = [...new Set(acting.flatMap((one) => readersOf(one, controllers)))].sort()
  return [
    'What will happen:',
    ...steps.map((step) => `  * ${step}`),
    ...(steps.length === 0 ? ['  * no service restarts and no pod is replaced'] : []),
    'Resources that change:',
    ...acting.map(({ what, type, id }) => `  ${marks[what]} ${type.type}/${id}`),
    ...(readers.length > 0 ? ['Controllers that read them:', ...readers.map((name) => `  ${name}`)] : []),
  ]
}

const marks = { created: '+', updated: '~', removed: '-' } as const

/** The effects of a change of these kinds, beyond other resources. */
const effects: Readonly<Record<string, (consequence: Consequence) => string | undefined>> = {
  'KubeletSpecs.kubernetes.talos.dev': () => 'service "kubelet" restarts',
  'EtcdSpecs.etcd.talos.dev': () => 'service "etcd" takes its new settings when it next starts',
  'StaticPods.kubernetes.talos.dev': ({ what, id }) =>
    `static pod "${id}" is ${what === 'created' ? 'started' : what === 'removed' ? 'stopped' : 'replaced'}`,
  'EtcFileSpecs.files.talos.dev': ({ id, what }) =>
    id === 'cri/conf.d/cri.toml' ? 'service "cri" restarts' : `file "/etc/${id}" is ${what === 'removed' ? 'removed' : 'written'}`,
  'HostnameSpecs.net.talos.dev': ({ after }) => after && `the host name becomes "${(after as { hostname: string }).hostname}"`,
  'KernelParamSpecs.runtime.talos.dev': ({ id, what, after }) =>
    what === 'removed'
      ? `kernel parameter "${id}" goes back to its default`
      : `kernel parameter "${id}" becomes "${(after as { value: string }).value}"`,
  'AddressSpecs.net.talos.dev': ({ id, what }) => `address "${id}" is ${what === 'removed' ? 'taken away' : 'set'}`,
  'RouteSpecs.net.talos.dev': ({ id, what }) => `route "${id}" is ${what === 'removed' ? 'taken away' : 'set'}`,
  'ResolverSpecs.net.talos.dev': ({ after }) =>
    after && `name servers become ${(after as { dnsServers: string[] }).dnsServers.join(', ') || 'none'}`,
  'TimeServerSpecs.net.talos.dev': ({ after }) =>
    after && `time servers become ${(after as { timeServers: string[] }).timeServers.join(', ') || 'none'}`,
  'MachineTypes.config.talos.dev': ({ before, after }) =>
    `the machine changes from ${before} to ${after}, which takes a reset to be complete`,
  'Environments.runtime.talos.dev': () => 'services get the new environment when they next start',
} as Record<string, (consequence: Consequence) => string | undefined>

function actsOn(consequence: Consequence): string[] {
  const sentence = effects[consequence.type.type]?.(consequence)
  return sentence ? [sentence] : []
}

function readersOf({ type, namespace, id, owner }: Consequence, controllers: readonly Controller[]): string[] {
  return controllers
    .filter(({ name }) => name !== owner)
    .filter(({ inputs }) =>
      Object.values<Input>(inputs).some(
        (input) => input.type.type === type.type && input.namespace === namespace && (input.id === undefined || input.id === id),
      ),
    )
    .map(({ name }) => name)
}
