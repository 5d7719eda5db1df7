import { EtcFileSpec } from './resources/etc-file-spec.ts'
import { EtcFileStatus } from './resources/etc-file-status.ts'

/** The kinds of resources of this area. */
export const resources = [EtcFileSpec, EtcFileStatus]
