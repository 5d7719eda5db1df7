/** How a component's pod runs, as its kubelet reports it. */
import type { KubeObject } from '../../../kube/object.ts'
import { lastWords } from '../../../supervise/last-words.ts'

interface Terminated {
  exitCode?: number
  reason?: string
  message?: string
}

interface ContainerStatus {
  ready?: boolean
  restartCount?: number
  state?: { running?: object; waiting?: { reason?: string; message?: string }; terminated?: Terminated }
  lastState?: { terminated?: Terminated }
}

interface PodStatus {
  conditions?: { type: string; status: string }[]
  containerStatuses?: ContainerStatus[]
}

/** How a pod runs. */
export interface PodRun {
  ready: boolean
  failures: number
  error: string
}

/** Reasons for waiting that are permanent: the image is missing, or no container can be created from it. */
const fatal =
  /^(ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|CreateContainerConfigError|CreateContainerError|RunContainerError)$/
/** The image failed once, and the kubelet has retried. */
const repeated = /BackOff$|^(InvalidImageName|ErrImageNeverPull)$/

/** Readiness, the number of failures and the reason of the last one. */
export function podRun({ status }: KubeObject): PodRun {
  const { conditions = [], containerStatuses = [] } = (status ?? {}) as PodStatus
  const ready = conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True')
  const runs = containerStatuses.map(containerRun)
  return {
    ready,
    failures: runs.reduce((sum, { failures }) => sum + failures, 0),
    error: runs.map(({ error }) => error).find((error) => error !== '') ?? '',
  }
}

function containerRun({ state = {}, lastState = {}, restartCount = 0 }: ContainerStatus): { failures: number; error: string } {
  const { reason = '', message = '' } = state.waiting ?? {}
  if (fatal.test(reason)) return { failures: restartCount + (repeated.test(reason) ? 2 : 1), error: message || reason }
  // Each restart follows an exit; a container that has exited and is not restarted yet counts as one more.
  const ended = state.terminated !== undefined || reason === 'CrashLoopBackOff'
  const end = state.terminated ?? lastState.terminated
  return { failures: restartCount + (ended ? 1 : 0), error: end ? why(end) : '' }
}

function why({ message = '', reason = '', exitCode }: Terminated): string {
  return lastWords(message).split('\n').at(-1) || (reason !== 'Error' && reason) || `exit code ${exitCode ?? 'unknown'}`
}
