/** How a pod runs, as its kubelet reports it. */
import { type ContainerStatus, isReady, type PodStatus, type Terminated } from '../../../kube/pod.ts'
import { lastWords } from '../../../supervise/last-words.ts'

/** How a component runs. */
export interface Run {
  readonly ready: boolean
  /** Exits and failed starts. */
  readonly failures: number
  /** The last failure in one line; empty when there was none. */
  readonly error: string
}

/** What keeps a container from running; `not-started` has the kubelet's reason for waiting. */
export type ContainerProblem =
  | { readonly kind: 'ended'; readonly exitCode?: number | undefined }
  | { readonly kind: 'no-image' }
  | { readonly kind: 'not-started'; readonly reason: string }

/** How one container runs. */
export interface ContainerRun {
  readonly name: string
  readonly ready: boolean
  readonly restarts: number
  /** Exits and failed starts. */
  readonly failures: number
  readonly problem?: ContainerProblem | undefined
  /** Its last output, or the message of the kubelet. */
  readonly error: string
}

/** How a pod runs. */
export interface PodRun extends Run {
  /** Init containers first. */
  readonly containers: readonly ContainerRun[]
}

// The reasons are those of the kubelet: kubelet/images/types.go and kubelet/container/sync_result.go.
const noImage = new Set(['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull'])
const notCreated = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError'])
/** The image failed once, and the kubelet has retried. */
const repeated = new Set(['ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull'])

/** Readiness, the failures of the containers and the reason of the last one. */
export function podRun(status: PodStatus): PodRun {
  const { initContainerStatuses = [], containerStatuses = [] } = status
  const runs = containerStatuses.map(containerRun)
  return {
    ready: isReady(status),
    failures: runs.reduce((sum, { failures }) => sum + failures, 0),
    error: runs.map(lineOf).find((line) => line !== '') ?? '',
    containers: [...initContainerStatuses.map(containerRun), ...runs],
  }
}

function containerRun({ name = '', ready = false, restartCount = 0, state = {}, lastState = {} }: ContainerStatus): ContainerRun {
  const run = { name, ready, restarts: restartCount }
  const { reason = '', message = '' } = state.waiting ?? {}
  if (noImage.has(reason) || notCreated.has(reason)) {
    const problem = noImage.has(reason) ? { kind: 'no-image' as const } : { kind: 'not-started' as const, reason }
    return { ...run, failures: restartCount + (repeated.has(reason) ? 2 : 1), problem, error: message || reason }
  }
  // Each restart follows an exit; a container that has exited and is not restarted yet counts as one more.
  const failures = restartCount + (state.terminated !== undefined || reason === 'CrashLoopBackOff' ? 1 : 0)
  const end = state.terminated ?? lastState.terminated
  if (end) return { ...run, failures, problem: { kind: 'ended', exitCode: end.exitCode }, error: outputOf(end) }
  if (state.waiting) return { ...run, failures, problem: { kind: 'not-started', reason }, error: message }
  return { ...run, failures, error: '' }
}

/** The kubelet's reason "Error" only repeats that the exit code was not 0. */
const outputOf = ({ message = '', reason = '' }: Terminated): string => lastWords(message) || (reason === 'Error' ? '' : reason)

function lineOf({ problem, failures, error }: ContainerRun): string {
  if (failures === 0 || problem?.kind !== 'ended') return failures === 0 ? '' : error
  return error.split('\n').at(-1) || `exit code ${problem.exitCode ?? 'unknown'}`
}
