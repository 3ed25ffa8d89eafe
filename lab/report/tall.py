"""x"""
def svg(plan, notes): return ""
