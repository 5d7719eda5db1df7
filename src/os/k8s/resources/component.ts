import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Changed settings that a component has not run with for long enough yet. */
export const ComponentTrial = defineResource({
  type: 'ComponentTrials.k8s.ichor.dev',
  namespace: 'k8s',
  displayType: 'ComponentTrial',
  columns: { Changed: '{.changed}', Started: '{.started}', Ready: '{.ready}', Failures: '{.failures}', Error: '{.error}' },
  spec: v.object({
    /** Digest of the settings on trial. */
    settings: v.string(),
    /** Paths in the machine configuration in which they differ from the last good ones. */
    changed: v.array(v.string()),
    /** Whether the component was started with them: etcd takes settings at its next start. */
    started: v.boolean(),
    ready: v.boolean(),
    failures: v.number(),
    error: v.string(),
  }),
})

/**
 * Settings with which a component did not start, and those that it runs with instead. A component that runs with the settings of
 * the machine configuration has none.
 */
export const ComponentFallback = defineResource({
  type: 'ComponentFallbacks.k8s.ichor.dev',
  namespace: 'k8s',
  displayType: 'ComponentFallback',
  sensitive: true,
  columns: { Changed: '{.changed}', Error: '{.error}', Since: '{.since}' },
  spec: v.object({
    /** The section of the machine configuration in effect: the last one the component ran with. */
    section: v.unknown(),
    /** Digest of the rejected settings. */
    rejected: v.string(),
    /** Paths in the machine configuration in which the two differ. */
    changed: v.array(v.string()),
    error: v.string(),
    /** RFC 3339. */
    since: v.string(),
  }),
})

/** How a component on this node runs, and with which settings: kubelet, one of the control plane's pods, or etcd. */
export const ComponentStatus = defineResource({
  type: 'ComponentStatuses.k8s.ichor.dev',
  namespace: 'k8s',
  displayType: 'ComponentStatus',
  initials: false,
  columns: { Settings: '{.settings}', Ready: '{.ready}', Failures: '{.failures}', Error: '{.error}' },
  spec: v.object({
    /** Digest of the settings it was started with, as `digestOf` computes it. */
    settings: v.string(),
    ready: v.boolean(),
    /** Number of exits, or of failed pulls of its image, since it was started with these settings. */
    failures: v.number(),
    /** The error of the last failure. */
    error: v.optional(v.string(), ''),
  }),
})
