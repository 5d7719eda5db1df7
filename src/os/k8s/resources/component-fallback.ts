import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/**
 * Settings of a component that did not start, and those that it runs with in their place. There is none for a component that
 * runs as the machine configuration has it.
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
