-- The twin of core/block.ts.
local STRIKE_MEMORY = 24 * 60 * 60 * 1000

local function isStanding(block, now)
  return block and (not block.untl or now < block.untl)
end

-- nil: never
local function blockForgettableAt(block)
  return block.untl and (block.strikes > 0 and block.untl + STRIKE_MEMORY or block.untl)
end

-- Blocks that start, or are changed.
local function blocking()
  local blocks = {}

  local function liveStrikes(block, now)
    if not block then
      return 0
    end
    local untl = blockForgettableAt(block)
    return (not untl or now < untl) and block.strikes or 0
  end

  function blocks.start(block, ladder, now)
    local strikes = liveStrikes(block, now)
    local rung = ladder[strikes < #ladder and strikes + 1 or #ladder]
    return { since = now, untl = now + rung, manual = false, strikes = #ladder > 1 and strikes + 1 or strikes }
  end

  -- ms: -1 for ever
  function blocks.byHand(block, ms, now)
    return { since = now, untl = ms >= 0 and now + ms or nil, manual = true, strikes = liveStrikes(block, now) }
  end

  function blocks.forgiven(block, now)
    if isStanding(block, now) and block.manual then
      return { since = block.since, untl = block.untl, manual = true, strikes = 0 }
    end
    return false
  end

  return blocks
end
