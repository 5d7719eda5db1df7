import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Changed settings that a component has not run with for long enough to be trusted. */
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
