import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** How a component on this node runs, and with which settings: kubelet, one of the control plane's pods, or etcd. */
export const ComponentStatus = defineResource({
  type: 'ComponentStatuses.k8s.ichor.dev',
  namespace: 'k8s',
  displayType: 'ComponentStatus',
  columns: { Settings: '{.settings}', Ready: '{.ready}', Failures: '{.failures}', Error: '{.error}' },
  spec: v.object({
    /** Digest of the settings it was started with, as `digestOf` computes it. */
    settings: v.string(),
    ready: v.boolean(),
    /** Ends of it, or failed pulls of its image, since it was started with these settings. */
    failures: v.number(),
    /** Why it failed last, in its own words. */
    error: v.optional(v.string(), ''),
  }),
})
