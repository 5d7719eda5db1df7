import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { Diagnostic } from '../../runtime/resources/diagnostic.ts'
import { Service } from '../../runtime/resources/service.ts'
import { recall, remember } from '../component/memory.ts'
import { type ComponentName, changedPaths, componentNames, digestOf, isDisabled, sectionOf } from '../component/settings.ts'
import { judge, rejectionOf, type Settings, settleTime, type TrialState } from '../component/trial.ts'
import { isControlPlane, kubernetesConfigOf } from '../machine-config.ts'
import { ComponentFallback, ComponentStatus, ComponentTrial } from '../resources/component.ts'

/** Milliseconds until a failed write is retried. */
const retryInterval = 10_000

/** What the controller uses of the machine. */
interface Dependencies {
  readonly kernel: Pick<Kernel, 'mode'> & { readonly files: Pick<Kernel['files'], 'readTextIfThere' | 'writeAtomic'> }
}

/**
 * Keeps the last good settings of each component in effect when changed ones do not start: the kubelet's, and on a control
 * plane those of the API server, the controller manager, the scheduler and etcd.
 */
export function tryComponentSettings({ kernel: { files, mode } }: Dependencies): Controller {
  let states: Map<ComponentName, TrialState> | undefined
  let unsaved = false
  const readiness = new Readiness()
  const recent = new RecentSettings()
  return defineController({
    name: 'k8s.ComponentTrialController',
    inputs: {
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      statuses: weak(ComponentStatus),
      etcd: weak(Service, { id: 'etcd' }),
      state: weak(VolumeMountStatus, { id: mountId('STATE') }),
    },
    outputs: { trials: exclusive(ComponentTrial), fallbacks: exclusive(ComponentFallback), diagnostics: shared(Diagnostic) },
    async reconcile({ config, statuses, etcd, state, trials, fallbacks, diagnostics, log, clock, now, wakeIn }) {
      const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
      if (!machineConfig || (mode === 'metal' && !state.get(mountId('STATE')))) return
      states ??= recall(files, log)
      for (const component of isControlPlane(machineConfig) ? componentNames : (['kubelet'] as const)) {
        if (isDisabled(component, machineConfig)) continue
        const section = sectionOf(component, machineConfig)
        const wanted: Settings = { digest: digestOf(section), section }
        const before = states.get(component) ?? {}
        const status = statuses.get(component)?.spec
        const readyFor = readiness.of(component, status, clock.elapsed())
        const running = recent.of(component, wanted, status?.settings)
        const judged = required(component).every((needed) =>
          needed === 'etcd' ? etcd.get('etcd')?.spec.healthy : statuses.get(needed)?.spec.ready,
        )
        const after = judge(before, wanted, { status, ...(running && { running }), readyFor, judged, now: now() })
        if (after !== before) {
          states.set(component, after)
          unsaved = true
        }
        if (status?.ready && after.good?.digest !== status.settings && readyFor < settleTime) wakeIn(settleTime - readyFor)
        const rejection = rejectionOf(after, wanted)
        if (!after.good || after.good.digest === wanted.digest) continue
        const paths = changedPaths(component, after.good.section, section)
        if (!rejection) {
          const started = status?.settings === wanted.digest
          const { ready = false, failures = 0, error = '' } = started ? status : {}
          trials.put(component, { settings: wanted.digest, changed: paths, started, ready, failures, error })
          continue
        }
        if (after !== before) log.warn('component rejected its new settings, restoring the previous ones', { component, settings: paths })
        fallbacks.put(component, {
          section: after.good.section,
          rejected: wanted.digest,
          changed: paths,
          error: rejection.error,
          since: rejection.since,
        })
        diagnostics.put(`${component}-settings`, {
          message: `${component} runs with its previous settings: it does not start with the new ones (${paths.join(', ')})`,
          details: [...(rejection.error ? [rejection.error] : []), 'correct them, or go back with "talosctl config-history restore"'],
        })
      }
      if (!unsaved) return
      try {
        await remember(files, states)
        unsaved = false
      } catch (error) {
        // A full disk must not keep the fallback from taking effect.
        log.error('remember component settings failed, retrying', { error })
        wakeIn(retryInterval)
      }
    },
  })
}

/** What must work before a component's failures count against its settings. */
const required = (component: ComponentName): ('etcd' | 'kube-apiserver')[] =>
  component === 'kubelet' || component === 'etcd' ? [] : component === 'kube-apiserver' ? ['etcd'] : ['etcd', 'kube-apiserver']

/** Measures for how long each component has been ready with the same settings and number of failures. */
class Readiness {
  readonly #since = new Map<ComponentName, { key: string; at: number }>()

  /** Milliseconds. */
  of(component: ComponentName, status: { settings: string; failures: number; ready: boolean } | undefined, elapsed: number): number {
    if (!status?.ready) {
      this.#since.delete(component)
      return 0
    }
    const key = `${status.settings} ${status.failures}`
    const known = this.#since.get(component)
    if (known?.key === key) return elapsed - known.at
    this.#since.set(component, { key, at: elapsed })
    return 0
  }
}

/** The settings that each component may still run with: the desired ones, and earlier ones it was started with. */
class RecentSettings {
  readonly #known = new Map<ComponentName, readonly Settings[]>()

  /** Records the desired settings; returns those of this digest, if they were desired before. */
  of(component: ComponentName, wanted: Settings, digest: string | undefined): Settings | undefined {
    const known = [...(this.#known.get(component) ?? []), wanted]
    const running = known.find((settings) => settings.digest === digest)
    this.#known.set(component, running && running.digest !== wanted.digest ? [running, wanted] : [wanted])
    return running
  }
}
