import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { timestamp } from '../../values.ts'

/** Id of the only trusted root. */
export const trustedRootId = 'trusted_root.json'

/** The roots of trust for image signatures. */
export const TUFTrustedRoot = defineResource({
  type: 'TUFTrustedRoots.security.talos.dev',
  namespace: 'security',
  displayType: 'TUFTrustedRoot',
  columns: { 'Last Refresh': '{.lastRefreshTime}' },
  spec: v.object({ lastRefreshTime: v.optional(timestamp), jsonData: v.optional(v.string()) }),
})
