/** How long the kubelet may take to end its pods before the machine stops, from its configuration file. */
import { milliseconds, parseDuration } from '../../../wire/duration.ts'

type Configuration = Readonly<Record<string, unknown>>

/** What all pods get, and how much of it, at the end, is for critical ones; in seconds. */
const defaults = { all: 30, critical: 10 }

/** The two keys as the system sets them, unless the operator sets periods by priority: the kubelet accepts only one kind. */
export function shutdownDefaults(extra: Configuration = {}): Record<string, string> {
  if (extra.shutdownGracePeriodByPodPriority !== undefined) return {}
  const { shutdownGracePeriod: given } = extra
  const nanoseconds = typeof given === 'string' ? parseDuration(given) : undefined
  const all = nanoseconds === undefined ? defaults.all : nanoseconds / 1e9
  // The time for critical pods is part of the whole, and the kubelet accepts no fraction of a second.
  const critical = Math.min(defaults.critical, Math.floor(all / 2))
  return { shutdownGracePeriod: `${defaults.all}s`, shutdownGracePeriodCriticalPods: `${critical}s` }
}

/** The most milliseconds that the kubelet takes. */
export function shutdownTime(config: Configuration): number {
  const { shutdownGracePeriod: all, shutdownGracePeriodByPodPriority: byPriority } = config
  if (Array.isArray(byPriority)) return byPriority.reduce<number>((total, each) => total + secondsOf(each) * 1000, 0)
  return typeof all === 'string' ? milliseconds(all) : 0
}

function secondsOf(entry: unknown): number {
  const seconds = typeof entry === 'object' && entry !== null && 'shutdownGracePeriodSeconds' in entry && entry.shutdownGracePeriodSeconds
  return typeof seconds === 'number' && seconds > 0 ? seconds : 0
}
