import { ImageCacheConfig } from './resources/image-cache-config.ts'
import { RegistryConfig } from './resources/registry-config.ts'
import { SeccompProfile } from './resources/seccomp-profile.ts'

/** The kinds of resources of this area. */
export const resources = [ImageCacheConfig, RegistryConfig, SeccompProfile]
